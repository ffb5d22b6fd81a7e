"""The actions of `roundelay sim`, one module each."""
