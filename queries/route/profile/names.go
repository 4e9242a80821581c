package profile

import "strings"

// readNames fills in the names, numbers and signs of a way.
func readNames(w *Way, tags Tags) {
	w.Name = tags.Get("name")
	if w.Name == "" && isSidePath(tags) {
		w.Name = tags.Get("is_sidepath:of:name")
		if w.Name == "" {
			w.Name = tags.Get("street:name")
		}
	}
	w.Ref = joinList(tags.Get("ref"), "; ")
	w.Exit = joinList(tags.Get("junction:ref"), "; ")
	if d, isOneWay := onlyDirection(w.Speed[Car]); isOneWay {
		w.Destinations = readDestinations(tags, d)
	}
}

// isSidePath reports whether a way for pedestrians or bicycles runs next to a road whose name it may bear.
func isSidePath(tags Tags) bool {
	switch tags.Get("highway") {
	case "footway", "cycleway", "path":
		return tags.Get("footway") == "sidewalk" || tags.Get("cycleway") == "sidepath" || tags.Get("is_sidepath") == "yes"
	}
	return false
}

// onlyDirection returns the open direction of a way whose other direction is closed.
func onlyDirection(speed [2]uint16) (Direction, bool) {
	switch {
	case speed[Forward] > 0 && speed[Backward] == 0:
		return Forward, true
	case speed[Backward] > 0 && speed[Forward] == 0:
		return Backward, true
	}
	return Forward, false
}

// The tags of the text of signs, the most informative first.
var (
	destinationKey       = newDirectedKeys("destination")[0]
	destinationRefKey    = newDirectedKeys("destination:ref")[0]
	destinationStreetKey = newDirectedKeys("destination:street")[0]
)

// readDestinations returns the number of the road that the signs show, the places, or both, as in "A 6: Lyon, Grenoble"; if there
// are neither, the street.
func readDestinations(tags Tags, d Direction) string {
	ref := joinList(destinationRefKey.get(tags, d), ", ")
	places := joinList(destinationKey.get(tags, d), ", ")
	switch {
	case ref != "" && places != "":
		return ref + ": " + places
	case places != "":
		return places
	case ref != "":
		return ref
	}
	return joinList(destinationStreetKey.get(tags, d), ", ")
}

// joinList writes a list of values, which tags separate by semicolons, with another separator.
func joinList(value, separator string) string {
	if !strings.Contains(value, ";") {
		return strings.TrimSpace(value)
	}
	var parts []string
	for part := range strings.SplitSeq(value, ";") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, separator)
}
