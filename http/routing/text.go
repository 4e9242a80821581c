package routing

import "lieudit/queries/route"

// stepText is a step in words.
func stepText(lang string, mode route.Mode, s route.Step) string { return "" }
