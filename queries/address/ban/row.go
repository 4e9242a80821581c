// Package ban reads the official files of the national address base (Base Adresse Nationale) into rows. It judges each
// row by itself and knows nothing of the others: what makes a street or a vintage of them is decided elsewhere.
package ban

// Kind tells what a row of the base is.
type Kind uint8

const (
	// HouseNumber is a numbered place on a street.
	HouseNumber Kind = iota
	// Locality is a named place without numbers (lieu-dit).
	Locality
)

// Row is one position of the base, as published. An empty field was empty or had no column.
type Row struct {
	ID      string // interoperability key, such as 48095_0275_00003_bis
	IDBan   string // the address's UUID where the file has one
	Kind    Kind
	Numero  uint32 // 0 to 9999; 0 for a locality
	Rep     string // repetition index: bis, ter, a…
	Voie    string // name of the street, or of the locality
	LieuDit string // nom_ld: the place the number stands in
	Alias   string // another name of the street

	NomAFNOR          string
	CodePostal        string
	CodeInsee         string
	Commune           string
	CodeInseeAncienne string
	CommuneAncienne   string
	Acheminement      string // libelle_acheminement: what La Poste writes on the last line

	Lon, Lat     float64 // WGS 84 degrees
	X, Y         float64 // metres in the legal projection of the territory
	TypePosition string
	Certifie     bool
	Parcelles    []string
}
