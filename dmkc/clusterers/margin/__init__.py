"""Maximum-margin clustering: MKC, SKMMC and what they share."""
