package shape

// Checked is a body, or an object inside one, with rules over several of its fields. Broken says which of them the
// values break, in a few words each; it is asked when each field by itself is right.
type Checked interface{ Broken() []string }

// Pointed is a body, or an object inside one, with rules that no tag says. Faulty names the members that break one, each
// with the rule in a few words; it is asked when each field by itself is right otherwise.
type Pointed interface{ Faulty() []Fault }

// Fault is a member and the rule it breaks.
type Fault struct{ Member, Rule string }
