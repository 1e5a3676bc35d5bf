"""Who serves a database after whom: waiting for another gateway's end, asking it to end, and beginning anew after a loss."""
