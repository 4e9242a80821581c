package locations

import "strings"

// DefaultZone is the time zone of a site that names none and is not in an overseas territory.
const DefaultZone = "Europe/Paris"

// territory is a part of France with its own time zone. It is recognized by the beginning of its postcodes and INSEE codes,
// and by a box around it: the southern and northern parallel, the western and eastern meridian.
type territory struct {
	codePrefix               string
	zone                     string
	south, north, west, east float64
}

// territories have the zones of the IANA database. Saint-Barthélemy and Saint-Martin have the time of Guadeloupe. The
// Marquesas and the Gambier Islands, half an hour and an hour ahead of Tahiti, get Tahiti's zone: their sites must name their
// own.
var territories = []territory{
	{"971", "America/Guadeloupe", 15.7, 16.6, -61.9, -60.9},
	{"972", "America/Martinique", 14.3, 15.0, -61.4, -60.7},
	{"973", "America/Cayenne", 2.0, 6.0, -54.7, -51.5},
	{"974", "Indian/Reunion", -21.5, -20.8, 55.1, 55.9},
	{"975", "America/Miquelon", 46.7, 47.2, -56.5, -56.0},
	{"976", "Indian/Mayotte", -13.1, -12.5, 44.9, 45.4},
	{"977", "America/Guadeloupe", 17.8, 18.0, -63.0, -62.7},
	{"978", "America/Guadeloupe", 18.0, 18.2, -63.2, -62.9},
	{"986", "Pacific/Wallis", -14.5, -13.1, -178.3, -176.0},
	{"987", "Pacific/Tahiti", -28.0, -7.5, -155.0, -134.0},
	{"988", "Pacific/Noumea", -23.0, -17.5, 158.0, 172.5},
}

// ZoneOf is the time zone of a site whose hours do not name one: that of its INSEE code, otherwise of its postcode, otherwise
// of its position. Each argument may be nil.
func ZoneOf(a *SiteAddress, lat, lon *float64) string {
	if a != nil {
		for _, code := range []string{a.InseeCode, a.PostalCode} {
			if code != "" && !strings.HasPrefix(code, "9") {
				return DefaultZone
			}
			for _, t := range territories {
				if strings.HasPrefix(code, t.codePrefix) {
					return t.zone
				}
			}
		}
	}
	for _, t := range territories {
		if lat != nil && lon != nil && t.south <= *lat && *lat <= t.north && t.west <= *lon && *lon <= t.east {
			return t.zone
		}
	}
	return DefaultZone
}
