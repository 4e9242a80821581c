package profile

import "strings"

// permission is the meaning of an access tag for a mode.
type permission uint8

const (
	unsaid     permission = iota
	denied                // the mode may not
	restricted            // only for access to what lies there
	other                 // an unknown value: opens a way that is closed to the mode, as in OSRM
	granted               // the mode may
)

// accessValues are the values that access tags may have for each mode. Any other value is other. Private roads may be reached by
// car, because most lead to somebody's door; on foot and by bicycle they are closed.
var accessValues = [Modes]map[string]permission{
	Car: {
		"yes": granted, "motorcar": granted, "motor_vehicle": granted, "vehicle": granted, "permissive": granted,
		"designated": granted, "hov": granted,
		"private": restricted, "delivery": restricted, "destination": restricted, "customers": restricted,
		"permit": restricted, "residents": restricted, "unknown": restricted,
		"no": denied, "agricultural": denied, "forestry": denied, "emergency": denied, "emergency_vehicle": denied, "psv": denied,
		"bus": denied, "minibus": denied, "taxi": denied, "share_taxi": denied, "foot": denied, "restricted": denied,
		"military": denied, "official": denied,
	},
	Foot: {
		"yes": granted, "foot": granted, "permissive": granted, "designated": granted,
		"destination": granted, "customers": granted, "residents": granted,
		"no": denied, "private": denied, "agricultural": denied, "forestry": denied, "delivery": denied, "use_sidepath": denied,
	},
	Bike: {
		"yes": granted, "permissive": granted, "designated": granted,
		"destination": granted, "customers": granted, "residents": granted,
		"no": denied, "private": denied, "agricultural": denied, "forestry": denied, "delivery": denied, "use_sidepath": denied,
	},
}

// directedKey is the key of a tag, with its forms for one direction.
type directedKey struct{ both, forward, backward string }

// get returns the value for a direction: that of the direction's own key, otherwise that of both.
func (k directedKey) get(tags Tags, d Direction) string {
	own := k.forward
	if d == Backward {
		own = k.backward
	}
	if v := tags.Get(own); v != "" {
		return v
	}
	return tags.Get(k.both)
}

func newDirectedKeys(keys ...string) []directedKey {
	directed := make([]directedKey, len(keys))
	for i, k := range keys {
		directed[i] = directedKey{k, k + ":forward", k + ":backward"}
	}
	return directed
}

// firstOf returns the value of the first key that has one in a direction.
func firstOf(keys []directedKey, tags Tags, d Direction) string {
	for _, k := range keys {
		if v := k.get(tags, d); v != "" {
			return v
		}
	}
	return ""
}

// ownAccessKeys are the access tags of each mode, the most specific first. The tag access, for all modes, comes after them.
var ownAccessKeys = [Modes][]directedKey{
	Car:  newDirectedKeys("motorcar", "motor_vehicle", "vehicle"),
	Foot: newDirectedKeys("foot"),
	Bike: newDirectedKeys("bicycle", "vehicle"),
}

var generalAccessKey = newDirectedKeys("access")[0]

// readAccess returns the permission of the access tags for a mode in a direction. The general tag access=yes has no effect on a way
// that is not made for the mode, unless it opens ways of that kind.
func readAccess(tags Tags, k kind, m Mode, d Direction) permission {
	if v := firstOf(ownAccessKeys[m], tags, d); v != "" {
		return parseAccess(v, m)
	}
	p := parseAccess(generalAccessKey.get(tags, d), m)
	if p != denied && k.speed[m] == 0 && !k.opens[m] {
		return unsaid
	}
	return p
}

// parseAccess reads a value or a list of values. The most permissive value of a list counts.
func parseAccess(value string, m Mode) permission {
	if value == "" {
		return unsaid
	}
	best := unsaid
	for part := range strings.SplitSeq(value, ";") {
		p, ok := accessValues[m][strings.TrimSpace(part)]
		if !ok {
			p = other
		}
		best = max(best, rankInList(p, value))
	}
	return best
}

// rankInList ranks an unknown value below the others of its list.
func rankInList(p permission, list string) permission {
	if p == other && strings.Contains(list, ";") {
		return unsaid
	}
	return p
}

// oneWayKeys are the tags for one-way roads of each mode, the most specific first. Pedestrians heed only their own.
var oneWayKeys = [Modes][]string{
	Car:  {"oneway:motorcar", "oneway:motor_vehicle", "oneway:vehicle", "oneway"},
	Foot: {"oneway:foot"},
	Bike: {"oneway:bicycle", "oneway"},
}

// readOneWay returns the directions of a road that are open to a mode, by one-way tags only. After an unknown value, such as
// alternating, the next tag decides.
func readOneWay(tags Tags, k kind, m Mode) (open [2]bool) {
	for _, key := range oneWayKeys[m] {
		switch tags.Get(key) {
		case "yes", "1", "true":
			return [2]bool{Forward: true}
		case "-1":
			return [2]bool{Backward: true}
		case "no", "0", "false":
			return [2]bool{true, true}
		}
	}
	if k.isImpliedOne && m != Foot {
		return [2]bool{Forward: true}
	}
	return [2]bool{true, true}
}
