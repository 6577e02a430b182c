"""Carries requests and answers over connections: sockets → request_reader → the application → connection → sockets.

Quicker than a general ASGI server where a trainer's and its environments' time goes: a body is received where it
stays, most requests are answered without a task of their own, and an answer knows whether it arrived. `asgi.py` is for
whoever runs the application inside another server.
"""
