"""The vocabulary every layer shares: identities, effects, and the Core and Engine contracts.

Nothing here does anything: it imports the data modules of the standard library and no other
package of Roundelay.
"""
