"""The same run over many machines: Ray places and ends the workers, and nothing true lives in it.

    worker   one worker: a desk, and an engine in a thread of its own
    on_ray   the fleet of such workers as actors of Ray, and the session that is led over them

Only `on_ray` imports ray, which is an extra.
"""
