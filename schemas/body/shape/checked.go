package shape

// RuleChecker is a body, or an object inside one, with rules over several of its fields. Broken says which of them the
// values break, in a few words each; it is asked when each field by itself is right.
type RuleChecker interface{ BrokenRules() []string }

// MemberChecker is a body, or an object inside one, with rules that no tag says. Faulty names the members that break one, each
// with the rule in a few words; it is asked when each field by itself is right otherwise.
type MemberChecker interface{ MemberFaults() []MemberFault }

// MemberFault is a member and the rule it breaks.
type MemberFault struct{ Member, Rule string }
