// A button on each block of code. Of a session at a terminal it copies the commands, without the prompt and what they print.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const lines = () => block.querySelector("pre").innerText.replace(/\n$/, "").split("\n");
    const wanted = () => {
      const commands = lines().filter((line) => line.startsWith("$ "));
      return commands.length ? commands.map((line) => line.slice(2).replace(/\s+#\s.*$/, "")) : lines();
    };
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(wanted().join("\n") + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    // A page opened as a file has no clipboard in some browsers; there the button would do nothing.
    if (navigator.clipboard) block.append(button);
  }
});
