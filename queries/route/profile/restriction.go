package profile

import (
	"slices"
	"strings"
)

// Member is a member of a relation.
type Member struct {
	IsNode, IsWay bool
	ID            int64
	Role          string
}

// Restriction forbids turns, or all turns except one. It leads from a way over a node, or over one or more ways in their order, to
// a way. Several From ways are for no_entry, several To ways for no_exit: each pair of them is restricted.
type Restriction struct {
	IsOnly   bool // traffic from From over the via must continue to To
	From, To []int64
	ViaNode  int64
	ViaWays  []int64 // nil: over ViaNode
	Modes    [Modes]bool
}

// restrictionKeys are the tags of a restriction that are a mode's own, and the names by which the tag except exempts the mode. The
// tag restriction without a mode applies to vehicles, not to pedestrians.
var restrictionKeys = [Modes][]string{
	Car:  {"motorcar", "motor_vehicle", "vehicle"},
	Foot: {"foot"},
	Bike: {"bicycle", "vehicle"},
}

// ReadRestriction reads a relation. It returns false for a relation of another kind, for restrictions that apply to no mode, and
// for those whose members do not fit together.
func ReadRestriction(tags Tags, members []Member) (Restriction, bool) {
	kind := tags.Get("type")
	var r Restriction
	var value string
	for m := range Mode(Modes) {
		own := restrictionOf(tags, kind, m)
		if own == "" {
			continue
		}
		value = own
		r.Modes[m] = true
	}
	if value == "" || !r.addMembers(members) {
		return Restriction{}, false
	}
	r.IsOnly = strings.HasPrefix(value, "only_")
	return r, r.fits(value)
}

// restrictionOf returns the kind of a restriction that applies to a mode, or "".
func restrictionOf(tags Tags, kind string, m Mode) string {
	for _, name := range restrictionKeys[m] {
		isOfMode := kind == "restriction:"+name
		if value := tags.Get("restriction:" + name); value != "" && (isOfMode || kind == "restriction") {
			return knownRestriction(value)
		}
		if isOfMode {
			return knownRestriction(tags.Get("restriction"))
		}
	}
	if m == Foot || kind != "restriction" {
		return ""
	}
	for name := range strings.SplitSeq(tags.Get("except"), ";") {
		if slices.Contains(restrictionKeys[m], strings.TrimSpace(name)) {
			return ""
		}
	}
	return knownRestriction(tags.Get("restriction"))
}

// knownRestriction returns a value that is an unconditional restriction: any no_ or only_, except those on a red light.
func knownRestriction(value string) string {
	isOne := strings.HasPrefix(value, "no_") || strings.HasPrefix(value, "only_")
	if !isOne || strings.HasSuffix(value, "_on_red") {
		return ""
	}
	return value
}

// addMembers sorts the members by their roles; other roles, such as location_hint, do not matter to a route. It returns false
// unless the via is one node or consists of ways only.
func (r *Restriction) addMembers(members []Member) bool {
	nodes := 0
	for _, m := range members {
		switch {
		case m.Role == "from" && m.IsWay:
			r.From = append(r.From, m.ID)
		case m.Role == "to" && m.IsWay:
			r.To = append(r.To, m.ID)
		case m.Role == "via" && m.IsWay:
			r.ViaWays = append(r.ViaWays, m.ID)
		case m.Role == "via" && m.IsNode:
			r.ViaNode = m.ID
			nodes++
		}
	}
	return nodes == 1 && r.ViaWays == nil || nodes == 0 && r.ViaWays != nil
}

// fits reports whether a restriction has as many ends as its kind may have.
func (r *Restriction) fits(value string) bool {
	if len(r.From) == 0 || len(r.To) == 0 {
		return false
	}
	return (len(r.From) == 1 || value == "no_entry") && (len(r.To) == 1 || value == "no_exit")
}
