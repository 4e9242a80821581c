package body

// Address is a record of the address base: a house number, a street, a locality or a commune.
type Address struct {
	AddressCore
	AFNOR        string   `json:"nom_afnor,omitempty" doc:"The street's name in capitals, abbreviated by the norm"`
	X            float64  `json:"x,omitzero" doc:"Metres, legal projection of the territory"`
	Y            float64  `json:"y,omitzero" doc:"Metres"`
	PositionType string   `json:"type_position,omitempty" doc:"What the position is that of, such as entrée"`
	Certified    *bool    `json:"certification_commune,omitempty" doc:"Whether the commune vouches for the number"`
	Parcels      []string `json:"cad_parcelles,omitempty" doc:"Cadastral parcels"`
	Population   int      `json:"population,omitzero" doc:"Of a municipality"`

	StreetLine     string `json:"ligne_voie,omitempty" doc:"The street's line on an envelope"`
	ComplementLine string `json:"ligne_complement,omitempty" doc:"The line before it"`
	CityLine       string `json:"ligne_commune,omitempty" doc:"The last line"`
	Vintage        string `json:"millesime,omitempty" doc:"Of the base the record is from"`
}

// AddressCore is what every record shows.
type AddressCore struct {
	ID          string    `json:"id" doc:"May change between vintages"`
	BanID       string    `json:"id_ban,omitempty" doc:"Keep this one"`
	Type        string    `json:"type" enum:"housenumber street locality municipality"`
	Label       string    `json:"label"`
	Number      string    `json:"numero,omitempty"`
	Rep         string    `json:"rep,omitempty" doc:"Repetition index, such as bis"`
	Street      string    `json:"nom_voie,omitempty"`
	Locality    string    `json:"lieu_dit,omitempty"`
	PostalCode  string    `json:"code_postal,omitempty"`
	InseeCode   string    `json:"code_insee"`
	City        string    `json:"nom_commune"`
	OldCityCode string    `json:"code_insee_ancienne_commune,omitempty"`
	OldCity     string    `json:"nom_ancienne_commune,omitempty"`
	District    string    `json:"arrondissement,omitempty" doc:"Of Paris, Lyon or Marseille"`
	Department  *Division `json:"departement,omitempty"`
	Region      *Division `json:"region,omitempty"`
	Lon         float64   `json:"lon,omitzero" doc:"Degrees, WGS 84"`
	Lat         float64   `json:"lat,omitzero" doc:"Degrees, WGS 84"`
}

// Division is a department or a region.
type Division struct {
	Code string `json:"code"`
	Name string `json:"nom"`
}

// TooShortEnvelope is the envelope of a completion of too little.
var TooShortEnvelope = Envelope{"TOO_SHORT", "Type at least 3 letters or digits"}

// Suggestions is the answer of GET /address/autocomplete.
type Suggestions struct {
	Envelope
	Suggestions []Suggestion `json:"suggestions,omitzero" doc:"The likeliest first; empty when too little was typed"`
	Matches     []struct{}   `json:"matches,omitzero" max:"0" doc:"In the place of suggestions when nothing was found"`
}

// Suggestion is an address that may be meant.
type Suggestion struct {
	AddressCore
	Score      float64     `json:"score" min:"0" max:"1"`
	Highlights []Highlight `json:"surlignage"`
}

// Highlight is a run of characters of the label that was typed.
type Highlight struct {
	Start  int `json:"debut" doc:"Characters from the label's beginning"`
	Length int `json:"longueur"`
}

// Matches is the answer of /address/verify.
type Matches struct {
	Envelope
	Matches []Match `json:"matches" doc:"The best first"`
}

// Match is an address that was found, and how it compares with what was typed.
type Match struct {
	Address
	Score       float64    `json:"score" min:"0" max:"1"`
	NextScore   float64    `json:"score_suivant" min:"0" max:"1" doc:"Of the best other address: near to score when several fit"`
	Verdict     string     `json:"verdict" enum:"match_exact match_probable"`
	Precision   string     `json:"precision" enum:"housenumber street locality municipality" doc:"How far the match goes"`
	NumberFound *bool      `json:"numero_trouve,omitempty" doc:"When a number was typed: whether the base has it"`
	Nearby      []string   `json:"numeros_proches,omitempty" doc:"Numbers near one that is missing"`
	Components  Components `json:"composants"`
}

// Components compares the parts of an address.
type Components struct {
	Number     Component `json:"numero"`
	Rep        Component `json:"rep"`
	Street     Component `json:"voie"`
	PostalCode Component `json:"code_postal"`
	City       Component `json:"commune"`
}

// Component is one part, as typed and as kept.
type Component struct {
	Input   string `json:"saisi,omitempty"`
	Matched string `json:"retenu,omitempty"`
	Status  string `json:"statut" enum:"confirme corrige ajoute non_confirme absent"`
}

// Neighbours is the answer of /address/proximity.
type Neighbours struct {
	Envelope
	Center  *Center     `json:"center,omitempty"`
	Radius  int         `json:"radius,omitzero" doc:"Metres"`
	Results []Neighbour `json:"results,omitzero" doc:"The nearest first, then by id"`
	Matches []struct{}  `json:"matches,omitzero" max:"0" doc:"In the place of the rest when nothing lies near"`
}

// Center is a centre as it was resolved.
type Center struct {
	Input   string   `json:"saisi,omitempty"`
	Score   float64  `json:"score,omitzero"`
	Address *Address `json:"adresse,omitempty" doc:"What it was resolved to, unless it was a position"`
	Lon     float64  `json:"lon"`
	Lat     float64  `json:"lat"`
}

// Neighbour is an address near the centre.
type Neighbour struct {
	Address
	Distance int `json:"distance" doc:"Metres"`
}

// Localities is the answer of GET /locality/search.
type Localities struct {
	Envelope
	Results []Locality `json:"results,omitzero" doc:"The best first, then the most populous"`
	Matches []struct{} `json:"matches,omitzero" max:"0" doc:"In the place of results when nothing was found"`
}

// Locality is a commune, or an arrondissement of Paris, Lyon or Marseille.
type Locality struct {
	InseeCode   string    `json:"code_insee"`
	City        string    `json:"nom_commune"`
	Parent      string    `json:"commune_parente,omitempty" doc:"Of an arrondissement: the city's code"`
	PostalCodes []string  `json:"codes_postaux"`
	Population  int       `json:"population,omitzero"`
	Lon         float64   `json:"lon,omitzero"`
	Lat         float64   `json:"lat,omitzero"`
	Department  *Division `json:"departement,omitempty"`
	Region      *Division `json:"region,omitempty"`
	Score       float64   `json:"score"`
}
