"""Views: how nodes find each other, agree on who they are, and leave an old view together.

Totem's membership and recovery, made the substrate of every engine. Pure.
"""
