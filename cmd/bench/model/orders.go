package model

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"time"
)

// orders keeps the states that a thing may be in, given the answers so far. Commands that overlap took effect in some order, each between its
// beginning and its answer; a command of unknown fate takes effect at any later time, or never. An answer that no order explains is a
// violation. This is the test of linearizability by Wing and Gong, kept small: a command is ordered only when an answer requires it.
type orders[S state] struct {
	possible []branch[S]
	pending  []*step[S]  // commands under way, and those of unknown fate
	seen     []moment[S] // nil unless keepsMoments
	isUntold bool        // too many states to follow, or no state, until the next quiet moment

	keepsMoments bool

	// lostConflict means that a command of unknown fate takes effect before the next command that changes something and begins after its client
	// gave up, or never.
	lostConflict bool
}

// state is a possible state of a thing. It is immutable: a command makes another one.
type state interface{ hash() uint64 }

// step is a command under way.
type step[S state] struct {
	apply  func(S) []outcome[S] // its possible outcomes in a state
	isLost bool                 // its answer will never be known

	command      any // the command itself
	began, ended time.Time
}

// outcome is a state after a command, with the short form of the answer that the command then gets.
type outcome[S state] struct {
	state  S
	answer string
}

// branch is a possible state, with the answers of the commands that have taken effect in it but are not answered yet.
type branch[S state] struct {
	state   S
	done    map[*step[S]]string
	changer *step[S] // the last command that changed the state; nil: it was answered
}

// moment is a set of states and the time since which they are possible.
type moment[S state] struct {
	since  time.Time
	states []S
}

// maxBranches bounds the work on a thing about which much is unknown.
const maxBranches = 2000

func newOrders[S state](first S, keepsMoments bool) *orders[S] {
	o := &orders[S]{possible: []branch[S]{{state: first}}, keepsMoments: keepsMoments}
	o.note()
	return o
}

// begin records that a command is under way.
func (o *orders[S]) begin(command any, apply func(S) []outcome[S]) *step[S] {
	s := &step[S]{apply: apply, command: command, began: time.Now()}
	o.pending = append(o.pending, s)
	o.note()
	return s
}

// answered records the answer to a command. If no order explains it, answered returns the answers that would have been right. matches gets the
// due answer and the state at the time of the answer, which other commands may have changed since.
func (o *orders[S]) answered(s *step[S], answer string, matches func(now S, due, answer string) (is, mayBeLater bool)) (right []string, isExplained bool) {
	var kept []branch[S]
	o.explore(func(b branch[S]) bool {
		due, isDone := b.done[s]
		if !isDone {
			return true
		}
		is, mayBeLater := matches(b.state, due, answer)
		if is {
			kept = append(kept, b.without(s))
		} else if !slices.Contains(right, due) {
			right = append(right, due)
		}
		return !is && mayBeLater
	})
	isExplained = o.keep(s, kept)
	if o.lostConflict && slices.ContainsFunc(kept, func(b branch[S]) bool { return b.changer == s }) {
		o.forgetLost(s.began)
	}
	return right, isExplained
}

// forgetLost removes the commands that were lost before a time: they have taken effect by now or never will.
func (o *orders[S]) forgetLost(before time.Time) {
	isForgotten := func(s *step[S]) bool { return s.isLost && s.ended.Before(before) }
	o.pending = slices.DeleteFunc(o.pending, isForgotten)
	known := map[uint64]bool{}
	o.possible = slices.DeleteFunc(o.possible, func(b branch[S]) bool {
		maps.DeleteFunc(b.done, func(s *step[S], _ string) bool { return isForgotten(s) })
		h := o.hash(b)
		isKnown := known[h]
		known[h] = true
		return isKnown
	})
}

// lost records that the answer to a command will never be known. A request that was lost before and is sent again unchanged has no effect
// beyond the first, unless a change came between them: then the first conflicts.
func (o *orders[S]) lost(s *step[S]) {
	s.isLost, s.ended = true, time.Now()
	if o.lostConflict && slices.ContainsFunc(o.pending, func(l *step[S]) bool { return l != s && l.isLost && reflect.DeepEqual(l.command, s.command) }) {
		o.pending = slices.DeleteFunc(o.pending, func(other *step[S]) bool { return other == s })
	}
}

// refused records that a command had no effect and never will.
func (o *orders[S]) refused(s *step[S]) bool {
	var kept []branch[S]
	for _, b := range o.possible {
		if _, isDone := b.done[s]; !isDone {
			kept = append(kept, b)
		}
	}
	return o.keep(s, kept)
}

// keep keeps the branches that explain the outcome of a command, and reports whether there are any.
func (o *orders[S]) keep(s *step[S], kept []branch[S]) bool {
	o.pending = slices.DeleteFunc(o.pending, func(other *step[S]) bool { return other == s })
	if o.isUntold {
		return true
	}
	if o.isUntold = len(kept) == 0; o.isUntold {
		return false
	}
	o.possible = kept
	o.note()
	return true
}

// settle ends a quiet moment: no command is under way any more, and only states that match the shown one remain. If no state matches, it
// returns false. Then, and if too much was unknown, the state becomes one of those that would be shown like this.
func (o *orders[S]) settle(matches func(S) bool, wouldShow ...S) bool {
	var kept []branch[S]
	known := map[uint64]bool{}
	o.explore(func(b branch[S]) bool {
		if h := b.state.hash(); matches(b.state) && !known[h] {
			known[h] = true
			kept = append(kept, branch[S]{state: b.state})
		}
		return true
	})
	isPossible := o.isUntold || len(kept) > 0
	if !isPossible || o.isUntold {
		kept = nil
		for _, s := range wouldShow {
			kept = append(kept, branch[S]{state: s})
		}
	}
	o.possible, o.pending, o.seen, o.isUntold = kept, nil, nil, false
	o.note()
	return isPossible
}

// narrow keeps the states, of those possible at a quiet moment, that have a property. If none has it, all stay and narrow returns false.
func (o *orders[S]) narrow(isSo func(S) bool) bool {
	kept := slices.DeleteFunc(slices.Clone(o.possible), func(b branch[S]) bool { return !isSo(b.state) })
	if len(kept) == 0 {
		return false
	}
	o.possible = kept
	o.note()
	return true
}

// isCertain reports whether only one state is possible.
func (o *orders[S]) isCertain() bool {
	return !o.isUntold && len(o.pending) == 0 && len(o.possible) == 1
}

// explore visits each branch that commands under way can lead to, once. It continues from a branch if visit returns true.
func (o *orders[S]) explore(visit func(branch[S]) bool) {
	visited := map[uint64]bool{}
	queue := slices.Clone(o.possible)
	for ; len(queue) > 0 && !o.isUntold; queue = queue[1:] {
		b := queue[0]
		if h := o.hash(b); visited[h] {
			continue
		} else {
			visited[h] = true
		}
		if len(visited) > maxBranches {
			o.isUntold = true
			return
		}
		if !visit(b) {
			continue
		}
		for _, s := range o.pending {
			if _, isDone := b.done[s]; isDone {
				continue
			}
			for _, out := range s.apply(b.state) {
				queue = append(queue, b.with(s, out))
			}
		}
	}
}

// seed is shared, so that hashes can be compared.
var seed = maphash.MakeSeed()

// hash distinguishes branches by their states, and by which commands have taken effect with which answer.
func (o *orders[S]) hash(b branch[S]) uint64 {
	h := b.state.hash()
	for i, s := range o.pending {
		answer, isDone := b.done[s]
		if s.isLost {
			answer = ""
		}
		if isDone {
			h ^= hashOf(i, answer)
		}
	}
	return h
}

// hashOf returns the hash of two values together.
func hashOf[A, B comparable](a A, b B) uint64 {
	return maphash.Comparable(seed, struct {
		a A
		b B
	}{a, b})
}

// note remembers what is possible now, for requests that depend on the state a moment ago.
func (o *orders[S]) note() {
	if !o.keepsMoments || o.isUntold {
		return
	}
	m := moment[S]{since: time.Now()}
	o.explore(func(b branch[S]) bool {
		m.states = append(m.states, b.state)
		return true
	})
	o.seen = append(o.seen, m)
}

// during returns every state that was possible at some time since then.
func (o *orders[S]) during(since time.Time) (states []S) {
	for _, m := range slices.Backward(o.seen) {
		states = append(states, m.states...)
		if m.since.Before(since) {
			break
		}
	}
	return states
}

// clone returns a copy at a quiet moment.
func (o *orders[S]) clone() *orders[S] {
	c := *o
	c.possible, c.seen = slices.Clone(o.possible), slices.Clone(o.seen)
	return &c
}

func (b branch[S]) with(s *step[S], out outcome[S]) branch[S] {
	done := map[*step[S]]string{s: out.answer}
	maps.Copy(done, b.done)
	if out.state.hash() != b.state.hash() {
		return branch[S]{out.state, done, s}
	}
	return branch[S]{out.state, done, b.changer}
}

func (b branch[S]) without(s *step[S]) branch[S] {
	done := maps.Clone(b.done)
	delete(done, s)
	return branch[S]{b.state, done, b.changer}
}
