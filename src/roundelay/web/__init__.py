"""The dashboard: a small web server on this machine, and the page that it serves.

    application           the server: its routes, and what every answer says to the browser
    access                who may ask: whoever sends the token
    laboratory            the part of the page that runs the simulator

The page is in `static`: one module of JavaScript for each of its parts, no build step, nothing from
another host. It is given JSON and makes elements of it; no text from a node ever becomes HTML.
"""
