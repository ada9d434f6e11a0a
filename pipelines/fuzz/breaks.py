def draw(*a): pass
def play(*a): pass
def folder_in(f): return f
