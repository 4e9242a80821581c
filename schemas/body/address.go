package body

// The address base is the BAN, the national address base of France. A commune is a municipality, with a code of INSEE, the
// national statistics office. A locality (lieu-dit) is a named place that is not a street. A former commune is one that was
// merged into another.

// Address is a record of the address base: a house number, a street, a locality or a commune. AFNOR is the norm of postal
// addresses; X and Y are in the projection that is legal where the address is, such as Lambert-93.
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

// AddressCore is the part of a record that every answer shows. Which texts are there depends on Type; Label is the whole address
// in one line. Lon and Lat are 0 where the base has no position.
type AddressCore struct {
	ID          string    `json:"id" doc:"May change between vintages"`
	BanID       string    `json:"id_ban,omitempty" doc:"Keep this one"`
	BanIDOrigin string    `json:"id_ban_origine,omitempty" enum:"ban lieudit" doc:"Who made id_ban: the base, or lieudit where the base has none"`
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

// TooShortEnvelope is the envelope of a completion of a text that is too short to search for.
var TooShortEnvelope = Envelope{"TOO_SHORT", "Type at least 3 letters or digits"}

// Suggestions is the answer of GET /address/autocomplete. Matches documents the member of NoResults, which is sent in its place
// when nothing was found.
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

// Highlight is a part of the label that matches what was typed, in characters.
type Highlight struct {
	Start  int `json:"debut" doc:"Characters from the label's beginning"`
	Length int `json:"longueur"`
}

// Matches is the answer of /address/verify.
type Matches struct {
	Envelope
	Matches []Match `json:"matches" doc:"The best first"`
	Reason  string  `json:"motif,omitempty" enum:"hors_couverture commune_inconnue commune_contredite code_postal_contredit voie_absente numero_absent mots_inconnus plusieurs_adresses score_faible" doc:"With expliquer=true, where nothing was found: why, the first that holds in this order"`
}

// Match is an address that was found, and how it compares with what was typed. The verdict match_exact leaves no doubt; any other
// match is probable, and commune_seule is the commune in the place of an address that was not found. Verdicts, reasons and statuses
// are declared in queries/address.
type Match struct {
	Address
	Score       float64    `json:"score" min:"0" max:"1"`
	NextScore   float64    `json:"score_suivant" min:"0" max:"1" doc:"Of the best other address: near to score when several fit"`
	Verdict     string     `json:"verdict" enum:"match_exact match_probable commune_seule" doc:"commune_seule: with repli=commune, the commune alone was found"`
	Precision   string     `json:"precision" enum:"housenumber street locality municipality" doc:"How far the match goes"`
	IsResolved  bool       `json:"resout" doc:"Whether it can be taken for what was typed without asking anybody"`
	Reason      string     `json:"motif,omitempty" enum:"hors_couverture commune_inconnue commune_contredite code_postal_contredit voie_absente numero_absent mots_inconnus plusieurs_adresses score_faible" doc:"Why it cannot: the first that holds in this order"`
	NumberFound *bool      `json:"numero_trouve,omitempty" doc:"When a number was typed: whether the base has it, with its repetition index"`
	Nearby      []string   `json:"numeros_proches,omitempty" doc:"Numbers near one that is missing"`
	Components  Components `json:"composants"`
}

// Components compares the parts of an address, as typed and as the base has them.
type Components struct {
	Number     Component  `json:"numero"`
	Rep        Component  `json:"rep"`
	Street     Component  `json:"voie"`
	PostalCode Component  `json:"code_postal"`
	City       Component  `json:"commune"`
	Complement *Component `json:"complement,omitempty" doc:"Building, floor, BP, CS or CEDEX, when typed: absent from the base, which counts against no match, or confirme as its lieu-dit"`
	Unknown    []string   `json:"inconnus,omitempty" doc:"Words as typed that nothing explains beside a street that was found, such as the name of a building"`
}

// Component is one part of an address, as typed and as it was matched. Its status: confirme, typed and so in the base; corrige,
// typed otherwise than in the base; ajoute, not typed but in the base; non_confirme, typed but not in the base; absent, neither.
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

// Center is the centre of a search. Input, Score and Address are there where it was resolved from a text.
type Center struct {
	Input   string   `json:"saisi,omitempty"`
	Score   float64  `json:"score,omitzero"`
	Place   string   `json:"commune,omitempty" doc:"The commune that near means as a postcode or by its name: of several the most populous"`
	Address *Address `json:"adresse,omitempty" doc:"What it was resolved to, unless it was a position"`
	Lon     float64  `json:"lon"`
	Lat     float64  `json:"lat"`
}

// Neighbour is an address near the centre.
type Neighbour struct {
	Address
	Distance int `json:"distance" doc:"Metres; of a municipality, to its nearest address"`
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

// Explaining is whether an answer that holds nothing says why.
type Explaining struct {
	Explain bool `json:"expliquer,omitempty" doc:"Whether the answer says why, where nothing is found"`
}

// LegacyParameters are the parameters that /address/* accepts under the names of the former national API, so that its clients can
// keep their code. Where a parameter comes under both names, that of the former API is ignored.
type LegacyParameters struct {
	Postcodes    []string `json:"postcode,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"As code_postal, a filter"`
	CityCodes    []string `json:"citycode,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"As code_insee, a filter"`
	Autocomplete bool     `json:"autocomplete,omitempty" doc:"Without effect: each path has one way to search"`
}

// Bias is a point. Of addresses that fit the text as well, those nearer to it come first. It excludes none.
type Bias struct {
	Lat *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon: what lies nearer comes first among what fits as well"`
	Lon *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"With lat"`
}

// CompleteAddress is the query of GET /address/autocomplete.
type CompleteAddress struct {
	Q           string   `json:"q" min:"1" max:"200" syntax:"true" doc:"An address as far as it is typed"`
	Limit       int      `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Types       []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these; repeated or separated by commas"`
	PostalCodes []string `json:"code_postal,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"Only with one of these"`
	InseeCodes  []string `json:"code_insee,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"Only in one of these communes"`
	Departments []string `json:"departement,omitempty" pattern:"^([0-9]{2}|2[AB]|9[78][0-9])$" max:"50" doc:"Only in one of these departments"`
	Format      string   `json:"format,omitempty" enum:"json geojson"`
	Bias
	LegacyParameters
}

// VerifyAddress is the request of /address/verify: the address in one line, or in its parts.
type VerifyAddress struct {
	Q          string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"An address in one line; without it the parts are read"`
	Number     string   `json:"numero,omitempty" max:"20" doc:"House number with its repetition index"`
	Street     string   `json:"voie,omitempty" max:"200" doc:"Street or locality"`
	Complement string   `json:"complement,omitempty" max:"200" doc:"Building, floor, hamlet"`
	PostalCode string   `json:"code_postal,omitempty" max:"10"`
	City       string   `json:"commune,omitempty" max:"100"`
	InseeCode  string   `json:"code_insee,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$"`
	Limit      int      `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Types      []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these"`
	Fallback   string   `json:"repli,omitempty" enum:"aucun commune" default:"aucun" doc:"commune: where the address is not found, the commune that was typed answers, precision municipality, verdict commune_seule"`
	Format     string   `json:"format,omitempty" enum:"json geojson"`
	Explaining
	Bias
	LegacyParameters
}

// IsEmpty reports whether no address was sent.
func (q VerifyAddress) IsEmpty() bool {
	return q.Q == "" && q.Number == "" && q.Street == "" && q.PostalCode == "" && q.City == "" && q.InseeCode == ""
}

// NearAddress is the request of /address/proximity.
type NearAddress struct {
	Center      string   `json:"center,omitempty" min:"1" max:"200" syntax:"true" doc:"An address, its id or its id_ban"`
	Lat         *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon, in the place of center"`
	Lon         *float64 `json:"lon,omitempty" min:"-180" max:"180"`
	Radius      int      `json:"radius,omitempty" min:"1" max:"10000" default:"500" doc:"Metres"`
	Limit       int      `json:"limit,omitempty" min:"1" max:"100" default:"10"`
	Types       []string `json:"type,omitempty" enum:"housenumber street locality municipality" max:"4" doc:"Only these; all but municipality when left out"`
	PostalCodes []string `json:"code_postal,omitempty" pattern:"^[0-9]{5}$" max:"50" doc:"Only with one of these"`
	InseeCodes  []string `json:"code_insee,omitempty" pattern:"^[0-9][0-9AB][0-9]{3}$" max:"50" doc:"Only in one of these communes"`
	Format      string   `json:"format,omitempty" enum:"json geojson"`
	LegacyParameters
}

// IsEmpty reports whether no centre was sent.
func (q NearAddress) IsEmpty() bool { return q.Center == "" && q.Lat == nil && q.Lon == nil }

// SearchLocality is the query of GET /locality/search.
type SearchLocality struct {
	Q             string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"A commune's name, whole or its beginning"`
	Limit         int      `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	PostalCodes   []string `json:"code_postal,omitempty" pattern:"^[0-9]{5}$" max:"50"`
	Departments   []string `json:"departement,omitempty" pattern:"^([0-9]{2}|2[AB]|9[78][0-9])$" max:"50"`
	Regions       []string `json:"region,omitempty" pattern:"^[0-9]{2,3}$" max:"50"`
	PopulationMin *int     `json:"population_min,omitempty" min:"0" max:"100000000"`
	PopulationMax *int     `json:"population_max,omitempty" min:"0" max:"100000000"`
}

// IsEmpty reports whether no parameter was sent.
func (q SearchLocality) IsEmpty() bool {
	return q.Q == "" && q.PostalCodes == nil && q.Departments == nil && q.Regions == nil && q.PopulationMin == nil && q.PopulationMax == nil
}
