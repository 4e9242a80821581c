package profile

// Side is the side of the road that traffic keeps to.
type Side uint8

// The sides. Traffic on an untagged road keeps to the side of its country: see SideAt.
const (
	Untagged Side = iota
	Right
	Left
)

// readSide reads the side that a road is tagged with.
func readSide(tags Tags) Side {
	switch tags.Get("driving_side") {
	case "left":
		return Left
	case "right":
		return Right
	}
	return Untagged
}

// KeepsLeft reports whether traffic keeps left on a road at a position, in degrees.
func (s Side) KeepsLeft(lon, lat float64) bool {
	if s == Untagged {
		s = SideAt(lon, lat)
	}
	return s == Left
}

// leftHandAreas are the areas where traffic keeps left: west, south, east, north in degrees. They are rectangles whose sides lie in
// the sea wherever a border does, so that no French road, overseas or at the Channel, lies in one. Where a land border separates
// the sides (in Africa and Asia), a strip along it may be wrong.
var leftHandAreas = [][4]float64{
	{-11, 51.05, 1.75, 61}, {-6.5, 49.85, -1, 51.05}, {-1, 50.5, 1, 51.05}, // Great Britain, Ireland
	{-2.3, 49.15, -1.98, 49.28}, {-2.75, 49.38, -2.1, 49.77}, // Jersey, Guernsey
	{14.1, 35.75, 14.65, 36.15}, {32.2, 34.5, 34.65, 35.75}, // Malta, Cyprus
	{11.7, -35, 41, -18}, {22, -18, 33, -13.5}, {31, -11.7, 40.6, -1.1}, {34, -4.7, 41.6, 3.5}, {30.9, -1, 34, 3.7}, // southern, eastern Africa
	{57.2, -20.6, 63.6, -19.6}, {55.1, -4.9, 56, -4.1}, // Mauritius, Seychelles
	{66.5, 24, 74, 34}, {68, 5.5, 89, 29}, {88.5, 20.5, 92.2, 27.8}, // South Asia
	{98.2, 5.5, 102, 19}, {95, -11, 119.5, 5.5}, {119.5, -11, 141, 3}, {141, -12, 156, -1}, // Thailand, Malaysia, Indonesia, New Guinea
	{113.83, 22.15, 114.42, 22.53}, {113.52, 22.1, 113.6, 22.22}, // Hong Kong, Macau
	{129.65, 30, 146, 45.6}, {128, 30, 129.65, 33.9}, {122.9, 24, 131.5, 30}, // Japan
	{112, -44, 154.5, -10.5}, {166, -48, 179.5, -34}, {176.8, -19.5, 180, -16}, // Australia, New Zealand, Fiji
	{-172.9, -14.1, -171.3, -13.4}, {-176.3, -21.6, -173.6, -15.4}, // Samoa, Tonga
	{-78.5, 17.6, -76.1, 18.6}, {-79.3, 23.6, -73.8, 27.4}, {-81.5, 19.2, -79.6, 19.8}, // Jamaica, Bahamas, Cayman Islands
	{-61.5, 15.2, -61.2, 15.66}, {-61.1, 13.7, -60.85, 14.12}, {-61.95, 16.95, -61.6, 17.8}, // Dominica, Saint Lucia, Antigua
	{-62.9, 17.05, -62.5, 17.45}, {-62.3, 16.65, -62.1, 16.85}, {-63.2, 18.145, -62.9, 18.3}, {-65.1, 17.6, -64.2, 18.8}, // to the Virgin Islands
	{-61.9, 11.9, -61.05, 13.45}, {-59.7, 13, -59.4, 13.4}, {-61.95, 10, -60.45, 11.4}, // Grenada, Barbados, Trinidad
	{-65, 32.2, -64.6, 32.45}, {-59.5, 4, -57.2, 8.6}, {-57.2, 4, -54.15, 6.05}, {-61.5, -52.5, -57.6, -51}, // Bermuda, Guianas, Falklands
}

// SideAt is the side to which traffic keeps at a position, in degrees.
func SideAt(lon, lat float64) Side {
	for _, a := range leftHandAreas {
		if lon >= a[0] && lat >= a[1] && lon <= a[2] && lat <= a[3] {
			return Left
		}
	}
	return Right
}
