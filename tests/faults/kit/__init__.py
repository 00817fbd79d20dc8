"""Does the public fault kit count right, and what does it say of Holdfast?"""
