package network

import "slices"

// ruleTrie holds the turn restrictions of a mode as a trie of paths: a rule belongs to the directed segments that were driven
// before the turn, the last one last. A route is, after each segment, in the state of the longest path of the trie with which the
// segments driven so far end. A state of one segment is the segment's edge itself; each longer state is a copy of the edge, so
// that restrictions which overlap on the same segments keep apart. (This is the automaton of Aho and Corasick over the restricted
// paths.)
type ruleTrie struct {
	states   []ruleState
	children map[ruleKey]int32
}

// ruleState is a path of the trie and what follows from having driven it.
type ruleState struct {
	directed  uint32 // the last of the path
	length    int
	suffix    int32 // the longest other state with which the path ends, noState where none does
	forbidden []uint32
	only      []uint32 // where there are any, all others are forbidden
}

// ruleKey names a state by the one before its last directed segment.
type ruleKey struct {
	parent   int32
	directed uint32
}

// noState is the state of a route that is on no path of the trie.
const noState = -1

// add adds a rule: a route that has driven the path must not, or with isOnly must, continue to a directed segment.
func (t *ruleTrie) add(path []uint32, to uint32, isOnly bool) {
	if t.children == nil {
		t.children = map[ruleKey]int32{}
	}
	at := int32(noState)
	for i, directed := range path {
		key := ruleKey{at, directed}
		next, ok := t.children[key]
		if !ok {
			next = int32(len(t.states))
			t.states = append(t.states, ruleState{directed: directed, length: i + 1})
			t.children[key] = next
		}
		at = next
	}
	s := &t.states[at]
	list := &s.forbidden
	if isOnly {
		list = &s.only
	}
	if !slices.Contains(*list, to) {
		*list = append(*list, to)
	}
}

// link fills in the suffixes, after all rules were added: shorter paths first, as those of longer ones build on them.
func (t *ruleTrie) link() {
	byLength := make([]int32, len(t.states))
	parents := make([]int32, len(t.states))
	for key, state := range t.children {
		parents[state] = key.parent
	}
	for i := range byLength {
		byLength[i] = int32(i)
	}
	slices.SortStableFunc(byLength, func(a, b int32) int { return t.states[a].length - t.states[b].length })
	for _, state := range byLength {
		s := &t.states[state]
		s.suffix = noState
		if s.length > 1 {
			s.suffix = t.follow(t.states[parents[state]].suffix, s.directed)
		}
	}
}

// follow returns the state after a directed segment is driven from a state: noState where no rule begins with it.
func (t *ruleTrie) follow(state int32, directed uint32) int32 {
	// A route that leaves a path of the trie may still be on a shorter one, down to the segment just driven.
	for ; ; state = t.states[state].suffix {
		if next, ok := t.children[ruleKey{state, directed}]; ok {
			return next
		}
		if state == noState {
			return noState
		}
	}
}

// forbids reports whether the turn from a state to a directed segment is forbidden: by the rules of the whole path that was driven, or
// of any part of it that ends here.
func (t *ruleTrie) forbids(state int32, to uint32) bool {
	for ; state != noState; state = t.states[state].suffix {
		s := &t.states[state]
		if slices.Contains(s.forbidden, to) || len(s.only) > 0 && !slices.Contains(s.only, to) {
			return true
		}
	}
	return false
}

// isCopy reports whether a state is more than the edge itself.
func (t *ruleTrie) isCopy(state int32) bool { return state != noState && t.states[state].length > 1 }
