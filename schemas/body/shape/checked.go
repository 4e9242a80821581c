package shape

// Checked is a body, or an object inside one, with rules over several of its fields. Broken says which of them the
// values break, in a few words each; it is asked when each field by itself is right.
type Checked interface{ Broken() []string }
