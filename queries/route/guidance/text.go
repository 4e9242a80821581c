package guidance

import (
	"math"
	"strings"

	"lieudit/queries/route"
)

// Language is the language of a sentence.
type Language string

// The languages.
const (
	French  Language = "fr"
	English Language = "en"
)

// Text is the sentence for a step, without a full stop. An unknown language is French.
func Text(l Language, s route.Step) string {
	if l == English {
		return englishText(s)
	}
	return frenchText(s)
}

// compassIndex is the number of the point of the compass, of eight, that a bearing is nearest to.
func compassIndex(bearing float64) int { return int(math.Round(math.Mod(bearing+360, 360)/45)) % 8 }

// heading is the bearing in which a step begins. Routers that do not report it give the geometry of the step.
func heading(s route.Step) float64 {
	if s.Maneuver.BearingAfter == 0 && len(s.Geometry) > 1 {
		return Bearing(s.Geometry)
	}
	return s.Maneuver.BearingAfter
}

// splitDestinations parts "A 6: Lyon, Grenoble" into the number of the road and the places. A sign without places shows only
// numbers; the first of several counts.
func splitDestinations(destinations string) (ref, places string) {
	ref, places, hasBoth := strings.Cut(destinations, ": ")
	if !hasBoth {
		ref, places = "", destinations
		if isRef(destinations) {
			ref, places = destinations, ""
		}
	}
	ref, _, _ = strings.Cut(ref, ",")
	return strings.TrimSpace(ref), strings.TrimSpace(places)
}

// withoutRef removes the number of a road from the text of signs if the sentence has named it already.
func withoutRef(destinations, ref string) string {
	if sign, places := splitDestinations(destinations); sign != "" && spaceRef(sign) == spaceRef(ref) {
		return places
	}
	return destinations
}

// isRef reports whether a text is the number of a road: one to four capitals, and digits.
func isRef(text string) bool {
	text, _, _ = strings.Cut(text, ",")
	letters := strings.TrimRight(text, "0123456789")
	digits := text[len(letters):]
	letters = strings.TrimRight(letters, " ")
	isShort := len(letters) >= 1 && len(letters) <= 4 && !strings.ContainsAny(letters, " '-")
	return digits != "" && isShort && strings.ToUpper(letters) == letters
}

// bySide picks the text of the side of a direction, "" for straight on.
func bySide(m route.Modifier, left, right string) string {
	switch m {
	case route.SlightLeft, route.Left, route.SharpLeft:
		return left
	case route.SlightRight, route.Right, route.SharpRight:
		return right
	}
	return ""
}

// spaced puts a space before a text that is not empty.
func spaced(text string) string {
	if text == "" {
		return ""
	}
	return " " + text
}
