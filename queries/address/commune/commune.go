// Package commune is the table of the French communes: current, delegated and associated ones, the arrondissements of
// Paris, Lyon and Marseille, departments and regions. The table is part of the program, immutable
// and small in memory, so every lookup works without a file or a server.
//
//	communes.tsv.gz ── decode (once, in Load) ──► Table ── ByCode, ByPostcode, Children, Around ──► Commune
//	                                                └──── Search, over a nameIndex built at its first use ──► Match
//
// The table is made from @etalab/decoupage-administratif 6.0.0 (Code officiel géographique 2026), Licence Ouverte 2.0,
// joined with centres and bounds computed from the Base Adresse Nationale, Licence Ouverte 2.0.
package commune

import (
	"iter"
)

// Kind is the status of a commune today.
type Kind uint8

const (
	Current        Kind = iota
	Delegated           // part of a new commune, with a mayor of its own
	Associated          // part of another since the mergers of the 1970s
	Arrondissement      // of Paris, Lyon or Marseille
)

// Commune is one entry. A delegated commune may have the code of the commune it is part of.
type Commune struct {
	Code       string // INSEE, such as 48095 or 2A004
	Name       string
	Parent     string // the code of the commune it is part of; empty for a current one
	Kind       Kind
	Population uint32 // 0 when unknown, as for most delegated and associated communes

	Lon, Lat float64 // centre in WGS 84 degrees, 0 0 when unknown
	Bounds   Bounds  // zero when unknown

	postcodes string // five bytes each
}

// Bounds is a rectangle of degrees around a commune.
type Bounds struct{ West, South, East, North float64 }

// Located reports whether centre and bounds are known.
func (c *Commune) Located() bool { return c.Lon != 0 || c.Lat != 0 }

// Postcodes returns the commune's postcodes in order, empty if the source has none.
func (c *Commune) Postcodes() []string {
	codes := make([]string, 0, len(c.postcodes)/postcodeLength)
	for i := 0; i < len(c.postcodes); i += postcodeLength {
		codes = append(codes, c.postcodes[i:i+postcodeLength])
	}
	return codes
}

// OnlyPostcode is the commune's postcode if it has exactly one, otherwise it is empty.
func (c *Commune) OnlyPostcode() string {
	if len(c.postcodes) != postcodeLength {
		return ""
	}
	return c.postcodes
}

// HasPostcode reports whether the commune has a postcode.
func (c *Commune) HasPostcode(postcode string) bool {
	if len(postcode) != postcodeLength {
		return false
	}
	for i := 0; i < len(c.postcodes); i += postcodeLength {
		if c.postcodes[i:i+postcodeLength] == postcode {
			return true
		}
	}
	return false
}

// Department is the code of the department or overseas territory, such as 48, 2A or 974. A commune that became part of
// one in another department belongs to that department.
func (c *Commune) Department() string {
	if c.Parent != "" {
		return DepartmentOf(c.Parent)
	}
	return DepartmentOf(c.Code)
}

// All yields every entry in the order of codes, a current commune before the delegated one with its code.
func (t *Table) All() iter.Seq[*Commune] {
	return func(yield func(*Commune) bool) {
		for i := range t.communes {
			if !yield(&t.communes[i]) {
				return
			}
		}
	}
}

// Division is a department or a region.
type Division struct{ Code, Name string }

// departments are the departments and overseas territories with the code of their region. A territory without a region
// has its own code there.
var departments = map[string]struct{ name, region string }{
	"01": {"Ain", "84"}, "02": {"Aisne", "32"}, "03": {"Allier", "84"}, "04": {"Alpes-de-Haute-Provence", "93"},
	"05": {"Hautes-Alpes", "93"}, "06": {"Alpes-Maritimes", "93"}, "07": {"Ardèche", "84"}, "08": {"Ardennes", "44"},
	"09": {"Ariège", "76"}, "10": {"Aube", "44"}, "11": {"Aude", "76"}, "12": {"Aveyron", "76"},
	"13": {"Bouches-du-Rhône", "93"}, "14": {"Calvados", "28"}, "15": {"Cantal", "84"}, "16": {"Charente", "75"},
	"17": {"Charente-Maritime", "75"}, "18": {"Cher", "24"}, "19": {"Corrèze", "75"}, "21": {"Côte-d'Or", "27"},
	"22": {"Côtes-d'Armor", "53"}, "23": {"Creuse", "75"}, "24": {"Dordogne", "75"}, "25": {"Doubs", "27"},
	"26": {"Drôme", "84"}, "27": {"Eure", "28"}, "28": {"Eure-et-Loir", "24"}, "29": {"Finistère", "53"},
	"2A": {"Corse-du-Sud", "94"}, "2B": {"Haute-Corse", "94"}, "30": {"Gard", "76"}, "31": {"Haute-Garonne", "76"},
	"32": {"Gers", "76"}, "33": {"Gironde", "75"}, "34": {"Hérault", "76"}, "35": {"Ille-et-Vilaine", "53"},
	"36": {"Indre", "24"}, "37": {"Indre-et-Loire", "24"}, "38": {"Isère", "84"}, "39": {"Jura", "27"},
	"40": {"Landes", "75"}, "41": {"Loir-et-Cher", "24"}, "42": {"Loire", "84"}, "43": {"Haute-Loire", "84"},
	"44": {"Loire-Atlantique", "52"}, "45": {"Loiret", "24"}, "46": {"Lot", "76"}, "47": {"Lot-et-Garonne", "75"},
	"48": {"Lozère", "76"}, "49": {"Maine-et-Loire", "52"}, "50": {"Manche", "28"}, "51": {"Marne", "44"},
	"52": {"Haute-Marne", "44"}, "53": {"Mayenne", "52"}, "54": {"Meurthe-et-Moselle", "44"}, "55": {"Meuse", "44"},
	"56": {"Morbihan", "53"}, "57": {"Moselle", "44"}, "58": {"Nièvre", "27"}, "59": {"Nord", "32"},
	"60": {"Oise", "32"}, "61": {"Orne", "28"}, "62": {"Pas-de-Calais", "32"}, "63": {"Puy-de-Dôme", "84"},
	"64": {"Pyrénées-Atlantiques", "75"}, "65": {"Hautes-Pyrénées", "76"}, "66": {"Pyrénées-Orientales", "76"},
	"67": {"Bas-Rhin", "44"}, "68": {"Haut-Rhin", "44"}, "69": {"Rhône", "84"}, "70": {"Haute-Saône", "27"},
	"71": {"Saône-et-Loire", "27"}, "72": {"Sarthe", "52"}, "73": {"Savoie", "84"}, "74": {"Haute-Savoie", "84"},
	"75": {"Paris", "11"}, "76": {"Seine-Maritime", "28"}, "77": {"Seine-et-Marne", "11"}, "78": {"Yvelines", "11"},
	"79": {"Deux-Sèvres", "75"}, "80": {"Somme", "32"}, "81": {"Tarn", "76"}, "82": {"Tarn-et-Garonne", "76"},
	"83": {"Var", "93"}, "84": {"Vaucluse", "93"}, "85": {"Vendée", "52"}, "86": {"Vienne", "75"},
	"87": {"Haute-Vienne", "75"}, "88": {"Vosges", "44"}, "89": {"Yonne", "27"}, "90": {"Territoire de Belfort", "27"},
	"91": {"Essonne", "11"}, "92": {"Hauts-de-Seine", "11"}, "93": {"Seine-Saint-Denis", "11"},
	"94": {"Val-de-Marne", "11"}, "95": {"Val-d'Oise", "11"}, "971": {"Guadeloupe", "01"}, "972": {"Martinique", "02"},
	"973": {"Guyane", "03"}, "974": {"La Réunion", "04"}, "976": {"Mayotte", "06"},
	"975": {"Saint-Pierre-et-Miquelon", "975"}, "977": {"Saint-Barthélemy", "977"}, "978": {"Saint-Martin", "978"},
	"984": {"Terres australes et antarctiques françaises", "984"}, "986": {"Wallis et Futuna", "986"},
	"987": {"Polynésie française", "987"}, "988": {"Nouvelle-Calédonie", "988"}, "989": {"La Passion-Clipperton", "989"},
}

// regions are the 18 regions of the law of 2015, in force since 2016.
var regions = map[string]string{
	"01": "Guadeloupe", "02": "Martinique", "03": "Guyane", "04": "La Réunion", "06": "Mayotte", "11": "Île-de-France",
	"24": "Centre-Val de Loire", "27": "Bourgogne-Franche-Comté", "28": "Normandie", "32": "Hauts-de-France",
	"44": "Grand Est", "52": "Pays de la Loire", "53": "Bretagne", "75": "Nouvelle-Aquitaine", "76": "Occitanie",
	"84": "Auvergne-Rhône-Alpes", "93": "Provence-Alpes-Côte d'Azur", "94": "Corse",
}

// DepartmentOf is the department in a commune's code: two characters, three overseas.
func DepartmentOf(code string) string {
	n := 2
	if len(code) > 2 && (code[:2] == "97" || code[:2] == "98") {
		n = 3
	}
	return code[:min(n, len(code))]
}

// Department is the department or overseas territory with a code.
func Department(code string) (Division, bool) {
	d, ok := departments[code]
	return Division{code, d.name}, ok
}

// RegionOf is the region of a department. An overseas territory without a region is returned itself.
func RegionOf(department string) (Division, bool) {
	d, ok := departments[department]
	if !ok {
		return Division{}, false
	}
	if name, ok := regions[d.region]; ok {
		return Division{d.region, name}, true
	}
	return Division{d.region, d.name}, true
}

// Region is the region with a code.
func Region(code string) (Division, bool) {
	name, ok := regions[code]
	return Division{code, name}, ok
}
