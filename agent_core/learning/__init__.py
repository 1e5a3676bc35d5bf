"""What failures teach: which come back, who meets them, what helped, and what is done differently for it."""
