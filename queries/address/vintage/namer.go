package vintage

import (
	"slices"

	"lieudit/queries/address/text"
)

// namer gives names and terms their ordinals. Names are written as they come; terms are numbered at the end, in order.
type namer struct {
	w      *sectionWriter
	known  map[string]uint32
	length uint32
	terms  map[string]uint32 // in the order they came
	first  []uint32          // where each name's terms begin
	all    []uint32          // the terms of all names
}

func newNamer(w *sectionWriter) *namer {
	w.u32(secNameFirst, 0)
	return &namer{w: w, known: map[string]uint32{}, terms: map[string]uint32{}, first: []uint32{0}}
}

// of is the ordinal of a name.
func (n *namer) of(name string) uint32 {
	if at, ok := n.known[name]; ok {
		return at
	}
	at := uint32(len(n.known))
	n.known[name] = at
	n.w.bytes(secNameText, []byte(name))
	n.length += uint32(len(name))
	n.w.u32(secNameFirst, n.length)
	for _, t := range text.Terms(name) {
		id, ok := n.terms[t.Text]
		if !ok {
			id = uint32(len(n.terms))
			n.terms[t.Text] = id
		}
		n.all = append(n.all, id)
	}
	n.first = append(n.first, uint32(len(n.all)))
	return at
}

// settle numbers the terms in their order and gives them back sorted.
func (n *namer) settle() []string {
	sorted := make([]string, 0, len(n.terms))
	for t := range n.terms {
		sorted = append(sorted, t)
	}
	slices.Sort(sorted)
	renumbered := make([]uint32, len(sorted))
	for i, t := range sorted {
		renumbered[n.terms[t]] = uint32(i)
	}
	for i, t := range n.all {
		n.all[i] = renumbered[t]
	}
	n.terms, n.known = nil, nil
	return sorted
}

// termsOf are the terms of a name, after settle.
func (n *namer) termsOf(name uint32) []uint32 { return n.all[n.first[name]:n.first[name+1]] }
