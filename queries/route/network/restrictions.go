package network

import (
	"slices"

	"lieudit/queries/route/graph"
)

// A restriction over a node becomes a rule from a segment to a segment, one over ways a rule from all segments that are driven
// before the turn. An only_ restriction over ways says where to continue after the last via way. It does not concern a path that
// leaves the via ways earlier. Rules are kept in a ruleTrie.

// maxViaWays bounds the number of ways that a restriction may lead over, because each order of them is tried.
const maxViaWays = 6

// restrictor finds the segments of a mode that the members of restrictions stand for.
type restrictor struct {
	*layerBuilder
	wayOf      map[int64][]uint32  // the ways with an id, if restrictions name it
	segmentsOf map[uint32][]uint32 // by way, in order
}

// outcome is the result of a restriction. Among the first three a greater one is better, and a restriction gets the best outcome of
// all modes.
type outcome uint8

const (
	lacksMembers  outcome = iota // the map does not have all of them
	doesNotMeet                  // they do not meet, or are closed to the modes
	isApplied                    // by some mode
	isUnsupported                // it is for other vehicles, or has no known form
)

// addRules turns the restrictions that concern the mode into rules, and records the outcome of each if it is better than that of
// the previous modes.
func (b *layerBuilder) addRules(outcomes []outcome) {
	r := newRestrictor(b)
	for i := range b.restrictions {
		restriction := &b.restrictions[i]
		if !restriction.Modes[b.mode] {
			continue
		}
		paths := r.paths(restriction)
		for _, path := range paths {
			last := len(path) - 1
			b.rules.add(path[:last], path[last], restriction.IsOnly)
		}
		switch {
		case len(paths) > 0:
			outcomes[i] = isApplied
			b.applied++
		case r.hasMembers(restriction):
			outcomes[i] = max(outcomes[i], doesNotMeet)
		}
	}
	b.rules.link()
}

// hasMembers reports whether the map has all members of a restriction, and roads where they must be roads.
func (r *restrictor) hasMembers(restriction *restriction) bool {
	for _, id := range slices.Concat(restriction.From, restriction.ViaWays, restriction.To) {
		if len(r.wayOf[id]) == 0 {
			return false
		}
	}
	return restriction.via != graph.None || restriction.ViaWays != nil
}

// newRestrictor looks up the ways of restrictions and their segments.
func newRestrictor(b *layerBuilder) *restrictor {
	r := &restrictor{layerBuilder: b, wayOf: map[int64][]uint32{}, segmentsOf: map[uint32][]uint32{}}
	for i := range b.restrictions {
		for _, ids := range [][]int64{b.restrictions[i].From, b.restrictions[i].ViaWays, b.restrictions[i].To} {
			for _, id := range ids {
				r.wayOf[id] = nil
			}
		}
	}
	for w, id := range b.wayIDs {
		if ways, ok := r.wayOf[id]; ok {
			r.wayOf[id] = append(ways, uint32(w))
			r.segmentsOf[uint32(w)] = nil
		}
	}
	for i := range b.segments {
		way := b.segments[i].way
		if list, ok := r.segmentsOf[way]; ok {
			r.segmentsOf[way] = append(list, uint32(i))
		}
	}
	return r
}

// paths returns the paths that a restriction concerns: directed segments, the last of which is the turn's target.
func (r *restrictor) paths(restriction *restriction) (paths [][]uint32) {
	for _, via := range r.viaPaths(restriction) {
		for _, from := range restriction.From {
			for _, to := range restriction.To {
				paths = append(paths, r.joinPaths(from, via, to)...)
			}
		}
	}
	return paths
}

// viaPath leads over the via of a restriction from one junction to another. Over a via node both are the same and directed is nil.
type viaPath struct {
	from, to uint32
	directed []uint32
}

// viaPaths returns the paths over the via of a restriction: one for a node, one for each open order of via ways.
func (r *restrictor) viaPaths(restriction *restriction) []viaPath {
	if restriction.ViaWays == nil {
		if junction, ok := r.junctionOf(restriction.via); ok {
			return []viaPath{{from: junction, to: junction}}
		}
		return nil
	}
	if len(restriction.ViaWays) > maxViaWays {
		return nil
	}
	var found []viaPath
	for _, id := range restriction.ViaWays {
		for _, whole := range r.wholeWays(id) {
			rest := slices.Clone(restriction.ViaWays)
			rest = slices.Delete(rest, slices.Index(rest, id), slices.Index(rest, id)+1)
			found = append(found, r.extendPath(whole, rest)...)
		}
	}
	return found
}

// wholeWays returns the ways with an id from one end to the other, in each direction that is open.
func (r *restrictor) wholeWays(id int64) (paths []viaPath) {
	for _, way := range r.wayOf[id] {
		list := r.segmentsOf[way]
		if len(list) == 0 {
			continue
		}
		forward := make([]uint32, len(list))
		for i, s := range list {
			forward[i] = 2 * s
		}
		backward := slices.Clone(forward)
		slices.Reverse(backward)
		for i := range backward {
			backward[i]++
		}
		for _, directed := range [][]uint32{forward, backward} {
			if r.isPath(directed) {
				paths = append(paths, viaPath{r.tail(directed[0]), r.head(directed[len(directed)-1]), directed})
			}
		}
	}
	return paths
}

// isPath reports whether directed segments are open and follow each other.
func (r *restrictor) isPath(directed []uint32) bool {
	for i, d := range directed {
		if !r.isOpen(d) || i > 0 && r.head(directed[i-1]) != r.tail(d) {
			return false
		}
	}
	return true
}

// extendPath returns the paths that begin with one and lead over all the other ways, in whatever order they are listed.
func (r *restrictor) extendPath(begun viaPath, rest []int64) (paths []viaPath) {
	if len(rest) == 0 {
		return []viaPath{begun}
	}
	for i, id := range rest {
		for _, next := range r.wholeWays(id) {
			if next.from == begun.to {
				longer := viaPath{begun.from, next.to, slices.Concat(begun.directed, next.directed)}
				paths = append(paths, r.extendPath(longer, slices.Delete(slices.Clone(rest), i, i+1))...)
			}
		}
	}
	return paths
}

// joinPaths adds the segments of the two ways before and after a via. A restriction from a way onto itself is about turning back,
// so it does not concern traffic that goes straight on.
func (r *restrictor) joinPaths(from int64, via viaPath, to int64) (paths [][]uint32) {
	for _, before := range r.segmentsAt(from, via.from, endsHere) {
		for _, after := range r.segmentsAt(to, via.to, beginsHere) {
			if from == to && via.directed == nil && before != after^1 {
				continue
			}
			paths = append(paths, slices.Concat([]uint32{before}, via.directed, []uint32{after}))
		}
	}
	return paths
}

// The ends that segmentsAt looks for at a junction. The value is the direction bit to flip so that the tail lies at the junction.
const (
	beginsHere = iota
	endsHere
)

// segmentsAt returns the directed segments of the ways with an id that begin or end at a junction. If a way begins or ends there,
// those segments count; if it only passes, there must be exactly one candidate.
func (r *restrictor) segmentsAt(id int64, junction uint32, side uint32) []uint32 {
	var atEnd, passing []uint32
	for _, way := range r.wayOf[id] {
		for _, s := range r.segmentsOf[way] {
			for directed := 2 * s; directed <= 2*s+1; directed++ {
				end := directed ^ side // the directed segment that begins where the wanted one begins or ends
				if !r.isOpen(directed) || r.tail(end) != junction {
					continue
				}
				if r.segments[s].ends&(beginsWay<<(end&1)) != 0 {
					atEnd = append(atEnd, directed)
				} else {
					passing = append(passing, directed)
				}
			}
		}
	}
	if len(atEnd) == 0 && len(passing) == 1 {
		return passing
	}
	return atEnd
}

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
	suffix    int32 // the longest other state with which the path ends, or noState
	forbidden []uint32
	only      []uint32 // if not empty, all others are forbidden
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

// link fills in the suffixes after all rules were added: shorter paths first, because longer ones build on them.
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

// follow returns the state after a directed segment is driven from a state: noState if no rule begins with it.
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
