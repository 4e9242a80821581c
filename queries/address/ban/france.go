package ban

// box is a rectangle of degrees.
type box struct{ west, south, east, north float64 }

// territories are rectangles around the parts of France, a little wider than their coasts and borders.
var territories = [...]box{
	{-5.6, 41.2, 9.8, 51.3},         // the mainland and Corsica
	{55.1, -21.5, 55.95, -20.8},     // La Réunion
	{-61.3, 14.3, -60.7, 15.0},      // Martinique
	{-61.9, 15.7, -60.9, 16.6},      // Guadeloupe
	{-63.2, 17.8, -62.7, 18.2},      // Saint-Martin, Saint-Barthélemy
	{-54.7, 2.0, -51.5, 6.0},        // Guyane
	{44.9, -13.1, 45.4, -12.5},      // Mayotte
	{-56.6, 46.6, -56.0, 47.3},      // Saint-Pierre-et-Miquelon
	{163.4, -22.9, 168.4, -19.4},    // Nouvelle-Calédonie
	{-154.8, -27.8, -134.3, -7.7},   // Polynésie française
	{-178.3, -14.5, -176.0, -13.1},  // Wallis-et-Futuna
	{50.0, -50.0, 78.0, -37.0},      // the southern islands
	{-109.35, 10.2, -109.15, 10.45}, // Clipperton
}

func inFrance(lon, lat float64) bool {
	for _, b := range territories {
		if lon >= b.west && lon <= b.east && lat >= b.south && lat <= b.north {
			return true
		}
	}
	return false
}
