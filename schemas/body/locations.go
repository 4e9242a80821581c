package body

import (
	"encoding/json"
	"time"

	"lieudit/schemas/body/shape"
	"lieudit/schemas/locations"
)

// A site is a customer's place, such as a shop. A referential is a named group of sites. The content of a site is declared in
// schemas/locations, because events hold it too.

// OpenReferential is POST /locations/referentiels. The code of a referential is never free again.
type OpenReferential struct {
	Code string `json:"code" pattern:"^[a-z0-9_-]{1,64}$" doc:"For ever this referential's alone, archived or not. It stays on the log when the account is erased"`
	Name string `json:"nom,omitempty" max:"200" doc:"Goes with an erasure of the account"`
}

// RenameReferential is PATCH /locations/referentiels/{code}.
type RenameReferential struct {
	Name shape.Nullable[string] `json:"nom" max:"200" doc:"null: none"`
}

// ReferentialsQuery is the query of GET /locations/referentiels.
type ReferentialsQuery struct {
	Status string `json:"status,omitempty" enum:"active archived" doc:"Both when left out"`
}

// Referential is a group of sites.
type Referential struct {
	Code        string    `json:"code"`
	Name        string    `json:"nom,omitempty"`
	Status      string    `json:"status" enum:"active archived"`
	Created     time.Time `json:"cree_le"`
	Archived    time.Time `json:"archive_le,omitzero"`
	ActiveSites int       `json:"sites_actifs"`
}

// Referentials is GET /locations/referentiels.
type Referentials struct {
	Envelope
	Results []Referential `json:"results" doc:"By code"`
}

// SyncSites is POST /locations/referentiels/{code}/sites:sync: all the sites that the referential is to
// have.
type SyncSites struct {
	Sites            []SiteRow `json:"sites" max:"20000" unique:"external_id" doc:"No external_id twice"`
	ConfirmReduction bool      `json:"confirmer_reduction,omitempty" doc:"More than half of the active sites may be deactivated"`
	DryRun           bool      `json:"dry_run,omitempty" doc:"Nothing is written; what would be refused is told under refus"`
}

// UpsertSites is POST /locations/referentiels/{code}/sites:upsert: some sites; the others stay as they are.
type UpsertSites struct {
	Sites  []SiteRow `json:"sites" max:"20000" unique:"external_id" doc:"No external_id twice"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Nothing is written; what would be refused is told under refus"`
}

// SiteRow is a site of a sync or an upsert.
type SiteRow struct {
	ExternalID string `json:"external_id" pattern:"^[A-Za-z0-9._~:*@+-]{1,128}$" doc:"The caller's own, unique in the referential. It stays on the log when the account is erased: make it of no name and no address"`
	locations.Content
	IgnoredMembers
}

// PutSite is PUT /locations/referentiels/{code}/sites/{external_id}: the whole content of the site.
type PutSite struct {
	ExternalID string `json:"external_id,omitempty" doc:"As in the path, or left out"`
	locations.Content
	IgnoredMembers
}

// IgnoredMembers are the members of a site that the service sets. A body may carry them, so that a site can be sent back as it
// was shown; they are not read.
type IgnoredMembers struct {
	ID          shape.Ignored `json:"id,omitzero" doc:"Ignored"`
	Referential shape.Ignored `json:"referentiel,omitzero" doc:"Ignored"`
	Score       shape.Ignored `json:"geocode_score,omitzero" doc:"Ignored"`
	Precision   shape.Ignored `json:"geocode_precision,omitzero" doc:"Ignored"`
	Source      shape.Ignored `json:"position_source,omitzero" doc:"Ignored"`
	Active      shape.Ignored `json:"actif,omitzero" doc:"Ignored"`
	Version     shape.Ignored `json:"version,omitzero" doc:"Ignored"`
	Created     shape.Ignored `json:"cree_le,omitzero" doc:"Ignored"`
	Modified    shape.Ignored `json:"modifie_le,omitzero" doc:"Ignored"`
	Deactivated shape.Ignored `json:"desactive_le,omitzero" doc:"Ignored"`
}

// PatchSite is PATCH /locations/referentiels/{code}/sites/{external_id}, a merge patch (RFC 7396): what is left out stays,
// null removes.
type PatchSite struct {
	ExternalID string                          `json:"external_id,omitempty" doc:"As in the path, or left out"`
	Name       shape.Nullable[string]          `json:"nom,omitzero" max:"200"`
	Address    shape.Nullable[PatchAddress]    `json:"adresse,omitzero"`
	IDBan      shape.Nullable[string]          `json:"id_ban,omitzero" max:"64"`
	Lat        shape.Nullable[float64]         `json:"lat,omitzero" min:"-90" max:"90" doc:"null, with lon: the site is placed by its address"`
	Lon        shape.Nullable[float64]         `json:"lon,omitzero" min:"-180" max:"180"`
	Hours      shape.Nullable[json.RawMessage] `json:"horaires,omitzero" bytes:"16384" form:"Hours"`
	Phone      shape.Nullable[string]          `json:"telephone,omitzero" max:"64"`
	Email      shape.Nullable[string]          `json:"email,omitzero" max:"254"`
	Website    shape.Nullable[string]          `json:"site_web,omitzero" max:"2048"`
	Tags       shape.Nullable[[]string]        `json:"tags,omitzero" max:"50" each:"1 64" unique:"items" doc:"All of them: lists are replaced, not merged"`
	Properties shape.Nullable[json.RawMessage] `json:"proprietes,omitzero" members:"200" bytes:"16384" doc:"Merged member by member; what results has at most 100"`
	IgnoredMembers
}

// PatchAddress is a merge patch of an address. Its maxima are those of locations.SiteAddress.
type PatchAddress struct {
	Line1      shape.Nullable[string] `json:"ligne_1,omitzero" max:"200"`
	Line2      shape.Nullable[string] `json:"ligne_2,omitzero" max:"200"`
	PostalCode shape.Nullable[string] `json:"code_postal,omitzero" max:"10"`
	City       shape.Nullable[string] `json:"commune,omitzero" max:"100"`
	InseeCode  shape.Nullable[string] `json:"code_insee,omitzero" max:"5"`
	Country    shape.Nullable[string] `json:"pays,omitzero" max:"60"`
}

// Synced is the answer of sites:sync and sites:upsert: how many sites were created, changed and so on, or would be by a dry run.
type Synced struct {
	Envelope
	Created       int          `json:"crees"`
	Updated       int          `json:"modifies"`
	Unchanged     int          `json:"inchanges"`
	Reactivated   int          `json:"reactives"`
	Deactivated   int          `json:"desactives"`
	Changes       []SiteChange `json:"changes" doc:"All sites that were written, or would be by a dry run, by external_id; with a sync those that it deactivates too"`
	Geocoded      int          `json:"places" doc:"Of those written, by their address"`
	Geocodings    []Placement  `json:"placements" doc:"Those, and how surely"`
	Unlocated     []string     `json:"non_places" doc:"external_id of those that stay without a position"`
	Unplaced      []Unplaced   `json:"non_places_motifs,omitempty" doc:"Why, of the first 1,000 of them; one without an address has no reason"`
	ActiveBefore  int          `json:"actifs_avant" doc:"Active sites of the referential"`
	ActiveAfter   int          `json:"actifs_apres"`
	AccountActive int          `json:"sites_actifs" doc:"Active sites of the account, before"`
	Capacity      int          `json:"capacite"`
	Ceiling       int          `json:"plafond"`
	Alerts        []Alert      `json:"alertes" doc:"What is doubtful in the sites of the request, written or not; nothing is refused for it. At most 100, the gravest codes first, else as in the request"`
	AlertCounts   AlertCounts  `json:"alertes_par_code" doc:"Of all, by code"`
	Refusal       any          `json:"refus,omitempty" doc:"Of a dry run: the detail of the 409 it would get"`
}

// SiteChange is a site that a sync or an upsert writes, and what becomes of it.
type SiteChange struct {
	ExternalID string   `json:"external_id"`
	Effect     string   `json:"effet" enum:"cree modifie reactive desactive"`
	Fields     []string `json:"champs,omitempty" doc:"Of a site that had another content: the members that get another value, such as nom or adresse.commune. An answer that is repeated for an Idempotency-Key leaves them out"`
}

// Placement is a site whose position was found by its address, and how sure that is.
type Placement struct {
	ExternalID string              `json:"external_id"`
	Score      float64             `json:"geocode_score" min:"0" max:"1"`
	Precision  locations.Precision `json:"geocode_precision,omitempty" enum:"housenumber street locality municipality" doc:"Of what it got the position"`
}

// Unplaced is a site whose address led to no position, and why.
type Unplaced struct {
	ExternalID string `json:"external_id"`
	Reason     string `json:"motif" enum:"hors_couverture commune_inconnue commune_contredite code_postal_contredit voie_absente numero_absent mots_inconnus plusieurs_adresses score_faible" doc:"As that of a match of /address/verify"`
}

// Alert is something doubtful in a site of a sync or an upsert.
type Alert struct {
	Code       string `json:"code" enum:"position_inversee position_nulle position_loin place_commune adresse_vide sans_nom"`
	ExternalID string `json:"external_id"`
	Message    string `json:"message" doc:"A sentence in French, with the numbers"`
}

// AlertCounts are the numbers of alerts by code. Codes without any are left out.
type AlertCounts struct {
	InvertedPosition int `json:"position_inversee,omitempty" doc:"Outside France, and inside when lat and lon are turned"`
	NullPosition     int `json:"position_nulle,omitempty" doc:"At 0, 0"`
	FarPosition      int `json:"position_loin,omitempty" doc:"Over 30 km from the commune of the address, or not in the department of its postcode"`
	CommunePosition  int `json:"place_commune,omitempty" doc:"Placed at the centre of a commune"`
	EmptyAddress     int `json:"adresse_vide,omitempty"`
	EmptyName        int `json:"sans_nom,omitempty"`
}

// SitesQuery is the query of GET /locations/referentiels/{code}/sites.
type SitesQuery struct {
	Status string `json:"statut,omitempty" enum:"actif inactif tous" default:"actif"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"1000" default:"100"`
	Cursor string `json:"curseur,omitempty" max:"1000" doc:"As the page before gave it"`
}

// Sites is GET /locations/referentiels/{code}/sites.
type Sites struct {
	Envelope
	Results []locations.Site `json:"results" doc:"By external_id"`
	Cursor  string           `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// ChangesQuery is the query of GET /locations/changes.
type ChangesQuery struct {
	Cursor string `json:"curseur,omitempty" max:"1000" doc:"As the answer before gave it, however long ago; from the beginning when left out"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"1000" default:"100"`
}

// Changes is GET /locations/changes. A list that is shorter than the limit, and an empty one too, has all there is: the cursor is kept
// for the next time.
type Changes struct {
	Envelope
	Results []Change `json:"results" doc:"By the time of the last change"`
	Cursor  string   `json:"curseur"`
}

// The types of a Change.
const (
	SiteChanged         = "site"
	SiteDeactivated     = "site_desactive"
	ReferentialChanged  = "referentiel"
	ReferentialArchived = "referentiel_archive"
)

// Change is a site or a referential that changed, as it is now.
type Change struct {
	Type        string          `json:"type" enum:"site site_desactive referentiel referentiel_archive" doc:"site: created, changed or active again"`
	Referential string          `json:"referentiel" doc:"Its code"`
	ExternalID  string          `json:"external_id,omitempty" doc:"Of a site"`
	Version     int64           `json:"version,omitempty" doc:"Of a site"`
	At          time.Time       `json:"le" doc:"Of its last change"`
	Site        *locations.Site `json:"site,omitempty"`
}

// ExportSites is the query of GET /locations/referentiels/{code}/sites:export.
type ExportSites struct {
	Format     string `json:"format,omitempty" enum:"csv geojson ndjson" default:"csv"`
	CSVDialect string `json:"tableur,omitempty" enum:"standard excel" doc:"Of CSV: RFC 4180, or as a French Excel opens it (UTF-8 with a mark, semicolons, decimal commas). When left out, excel for who prefers French by Accept-Language"`
}

// SearchLocations is the query of GET /locations/search.
type SearchLocations struct {
	Q           string   `json:"q,omitempty" min:"1" max:"200" syntax:"true" doc:"Words of the site's name, address or tags. The last one may be the beginning of a word, and so may two before it of three letters or more"`
	Lat         *float64 `json:"lat,omitempty" min:"-90" max:"90" doc:"With lon: the centre"`
	Lon         *float64 `json:"lon,omitempty" min:"-180" max:"180" doc:"With lat: the centre"`
	Near        string   `json:"near,omitempty" min:"1" max:"200" doc:"The centre: a postcode or a commune, whose centre counts (of several communes that of the most populous, which center.commune names), or an address, its id or its id_ban. One that is not resolved is 422. Five digits are a postcode first"`
	Radius      *int     `json:"radius,omitempty" min:"1" max:"100000" doc:"Metres around the centre; when left out 10000, with sort=distance no limit"`
	BBox        string   `json:"bbox,omitempty" pattern:"^-?[0-9]+(\\.[0-9]+)?(,-?[0-9]+(\\.[0-9]+)?){3}$" doc:"lon,lat,lon,lat: the south-western corner, then the north-eastern one"`
	Referential string   `json:"referentiel,omitempty" pattern:"^[a-z0-9_-]{1,64}$" doc:"Only its sites"`
	Tags        []string `json:"tags,omitempty" max:"50" doc:"Sites with all of them; repeated or separated by commas"`
	Open        bool     `json:"ouvert,omitempty" doc:"true: only sites that are open now by their horaires, in their fuseau, else in the time zone of their address, else in Europe/Paris. Sites without hours, or with a text alone, are left out. false is as left out"`
	Limit       int      `json:"limit,omitempty" min:"1" max:"100" default:"20"`
	Cursor      string   `json:"curseur,omitempty" max:"4000" doc:"As the page before gave it, with the same parameters but limit"`
	Sort        string   `json:"sort,omitempty" enum:"pertinence distance nom duree" doc:"distance and duree need a centre. duree: the time to drive from it, of the 1000 sites nearest as the crow flies; those that no way leads to come last, by distance; secret keys only, of a plan with /route/matrix. When left out: pertinence with q, else distance with a centre, else nom"`
	Format      string   `json:"format,omitempty" enum:"json geojson"`
	Status      string   `json:"statut,omitempty" enum:"actif inactif tous" doc:"Secret keys only"`
	Total       bool     `json:"total,omitempty" doc:"true: how many sites are found on all pages. Secret keys only"`
	Facets      []string `json:"facettes,omitempty" max:"3" enum:"tags commune referentiel" doc:"How many of the sites found have each value of these; repeated or separated by commas. Secret keys only"`
}

// Counts are what a search with total or facettes is answered besides its sites.
type Counts struct {
	Total  *int    `json:"total,omitempty" doc:"With total=true: the sites found on all pages"`
	Facets *Facets `json:"facettes,omitempty" doc:"With facettes: those asked for"`
}

// Facets are the values of each facet, those of the most sites first.
type Facets struct {
	Tags         []ValueCount `json:"tags,omitempty" max:"100"`
	Towns        []ValueCount `json:"commune,omitempty" max:"100"`
	Referentials []ValueCount `json:"referentiel,omitempty" max:"100"`
}

// ValueCount is a value and how many sites have it, in any case and with accents or without.
type ValueCount struct {
	Value string `json:"valeur" doc:"As most of the sites have it"`
	Sites int    `json:"sites"`
}

// Locations is the answer of GET /locations/search to a secret key.
type Locations struct {
	Envelope
	Counts
	Center  *Center     `json:"center,omitempty" doc:"What near was resolved to"`
	Results []FoundSite `json:"results"`
	Cursor  string      `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// FoundSite is a site, and how many metres it is from the centre of the search, if that has one. Sorted by duree it has the way there by
// car too, unless there is none.
type FoundSite struct {
	locations.Site
	Distance      *int `json:"distance,omitempty" doc:"Metres"`
	Duration      *int `json:"duree,omitempty" doc:"With sort=duree: seconds to drive from the centre; left out where no way leads"`
	RouteDistance *int `json:"distance_route,omitempty" doc:"With sort=duree: metres of that way"`
}

// PublicLocations is the answer of GET /locations/search to a publishable key.
type PublicLocations struct {
	Envelope
	Center  *Center      `json:"center,omitempty" doc:"Where near lies, and the commune if it means one"`
	Results []PublicSite `json:"results"`
	Cursor  string       `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// PublicSite is what a publishable key may see of a site: these members and no others, whatever members sites get later.
type PublicSite struct {
	Name     string          `json:"nom,omitempty"`
	Address  *PublicAddress  `json:"adresse,omitempty"`
	Lat      *float64        `json:"lat,omitempty"`
	Lon      *float64        `json:"lon,omitempty"`
	Hours    json.RawMessage `json:"horaires,omitempty" form:"Hours"`
	Phone    string          `json:"telephone,omitempty"`
	Website  string          `json:"site_web,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Distance *int            `json:"distance,omitempty" doc:"Metres"`
}

// PublicAddress is the address of a PublicSite.
type PublicAddress struct {
	Line1      string `json:"ligne_1,omitempty"`
	Line2      string `json:"ligne_2,omitempty"`
	PostalCode string `json:"code_postal,omitempty"`
	City       string `json:"commune,omitempty"`
	InseeCode  string `json:"code_insee,omitempty"`
	Country    string `json:"pays,omitempty"`
}

// LocationCollection is the answer of GET /locations/search with format=geojson to a secret key.
type LocationCollection struct {
	CollectionEnvelope
	Counts
	Features []LocationFeature `json:"features"`
}

// PublicCollection is the answer of GET /locations/search with format=geojson to a publishable key.
type PublicCollection struct {
	CollectionEnvelope
	Features []PublicFeature `json:"features"`
}

// CollectionEnvelope is the part of a FeatureCollection around its features.
type CollectionEnvelope struct {
	Type string `json:"type" enum:"FeatureCollection"`
	Envelope
	Center *Center `json:"center,omitempty" doc:"What near was resolved to; to a publishable key where it lies, and the commune if it means one"`
	Cursor string  `json:"curseur,omitempty" doc:"Of the page after; none after the last"`
}

// LocationFeature is a site as GeoJSON.
type LocationFeature struct {
	FeatureGeometry
	Properties FoundSite `json:"properties"`
}

// PublicFeature is what a publishable key may see of a site, as GeoJSON.
type PublicFeature struct {
	FeatureGeometry
	Properties PublicSite `json:"properties"`
}

// FeatureGeometry is the position of a feature. GeoJSON demands the member geometry, so it is null where there is no position.
type FeatureGeometry struct {
	Type     string `json:"type" enum:"Feature"`
	Geometry *Point `json:"geometry" doc:"null: the site has no position"`
}

// NewFeatureGeometry is the geometry of a position; null where there is none.
func NewFeatureGeometry(lat, lon *float64) FeatureGeometry {
	p := FeatureGeometry{Type: "Feature"}
	if lat != nil && lon != nil {
		p.Geometry = &Point{Type: "Point", Coordinates: []float64{*lon, *lat}}
	}
	return p
}

// ExportedCollection is a referential as GeoJSON. It has no envelope: it is a file.
type ExportedCollection struct {
	Type     string            `json:"type" enum:"FeatureCollection"`
	Features []ExportedFeature `json:"features"`
}

// ExportedFeature is a site of an export.
type ExportedFeature struct {
	FeatureGeometry
	Properties locations.Site `json:"properties"`
}
