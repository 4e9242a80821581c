package body

import (
	"github.com/google/jsonschema-go/jsonschema"

	"lieudit/schemas/body/shape"
)

// The rules over several members as the OpenAPI documents state them: in words, and as a schema of what breaks them. The decoder
// checks them by the methods of rules.go, or the handler by IsEmpty.

// StatedRules is the rule of BrokenRules.
func (CompleteAddress) StatedRules() []shape.Rule { return []shape.Rule{latWithLon} }

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (VerifyAddress) StatedRules() []shape.Rule {
	parts := given("numero", "voie", "complement", "commune")
	return []shape.Rule{
		{Text: "q and the parts of an address exclude each other", Breaks: allOf(anyOf(given("q")...), anyOf(parts...))},
		latWithLon,
		oneOfThese("one of q, numero, voie, code_postal, commune and code_insee is there",
			given("q", "numero", "voie", "code_postal", "commune", "code_insee")),
	}
}

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (NearAddress) StatedRules() []shape.Rule {
	return []shape.Rule{
		latWithLon,
		{Text: "center and lat with lon exclude each other", Breaks: allOf(anyOf(given("center")...), anyOf(given("lat", "lon")...))},
		oneOfThese("center, or lat and lon, is there", given("center", "lat", "lon")),
	}
}

// StatedRules are the rule of BrokenRules and that of IsEmpty.
func (SearchLocality) StatedRules() []shape.Rule {
	return []shape.Rule{
		{Text: "population_min must be less than or equal to population_max"},
		oneOfThese("one parameter beside limit is there", given("q", "code_postal", "departement", "region", "population_min", "population_max")),
	}
}

// StatedRules is the rule of BrokenRules.
func (FormerSearch) StatedRules() []shape.Rule {
	lat, lon := anyOf(given("lat")...), anyOf(given("lon", "lng", "long")...)
	return []shape.Rule{{Text: "lat and lon go together", Breaks: anyOf(allOf(lat, not(lon)), allOf(lon, not(lat)))}}
}

// StatedRules is the rule of IsEmpty.
func (FormerReverse) StatedRules() []shape.Rule {
	lat, lon := anyOf(given("lat")...), anyOf(given("lon", "lng", "long")...)
	return []shape.Rule{{Text: "lat and lon are there; lng and long are other names of lon", Breaks: not(allOf(lat, lon))}}
}

// StatedRules is the rule of BrokenRules.
func (SiteRow) StatedRules() []shape.Rule { return []shape.Rule{latWithLon} }

// StatedRules is the rule of BrokenRules, and that an external_id is that of the path.
func (PutSite) StatedRules() []shape.Rule { return []shape.Rule{latWithLon} }

// StatedRules are the rules of BrokenRules. A cursor belongs to the search that gave it.
func (SearchLocations) StatedRules() []shape.Rule {
	position, center := anyOf(given("lat", "lon")...), anyOf(given("lat", "lon", "near")...)
	return []shape.Rule{
		latWithLon,
		{Text: "near and lat with lon exclude each other", Breaks: allOf(anyOf(given("near")...), position)},
		{Text: "radius needs lat and lon, or near", Breaks: allOf(anyOf(given("radius")...), not(center))},
		{Text: "sort=distance and sort=duree need lat and lon, or near", Breaks: allOf(is("sort", "distance", "duree"), not(center))},
	}
}

// StatedRules are the rules of BrokenRules.
func (*Bound) StatedRules() []shape.Rule {
	position, site := anyOf(given("lat", "lon")...), anyOf(given("referentiel", "external_id")...)
	return []shape.Rule{
		latWithLon,
		together("referentiel and external_id go together", "referentiel", "external_id"),
		{Text: "a bound is lon and lat, or referentiel and external_id", Breaks: anyOf(allOf(position, site), not(anyOf(position, site)))},
	}
}

// StatedRules is the rule of BrokenRules.
func (ComputeRoute) StatedRules() []shape.Rule {
	return []shape.Rule{{
		Text: "alternatives go without waypoints", Breaks: allOf(is("alternatives", 1, 2), anyOf(given("waypoints")...)),
	}}
}

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (MatrixQuery) StatedRules() []shape.Rule { return append(destinationsInQuery(), matrixSize) }

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (MatrixBody) StatedRules() []shape.Rule { return append(destinationsInBody(), matrixSize) }

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (NearestQuery) StatedRules() []shape.Rule { return destinationsInQuery() }

// StatedRules are the rules of BrokenRules, and that of IsEmpty.
func (NearestBody) StatedRules() []shape.Rule { return destinationsInBody() }

// StatedRules is the rule of MemberFaults: what the values measure decides how high they may be.
func (ComputeIsochrone) StatedRules() []shape.Rule {
	return []shape.Rule{{
		Text: "a value is from 1 to 3600 seconds, or to 100000 metres with cost_type=distance",
		Breaks: anyOf(
			hasItemOutside("cost_values", 1, 100000),
			allOf(not(is("cost_type", "distance")), hasItemOutside("cost_values", 1, 3600)),
		),
	}}
}

// StatedRules is the rule of BrokenRules.
func (OptimizeStops) StatedRules() []shape.Rule {
	return []shape.Rule{{
		Text: "round_trip and end=fixed exclude each other", Breaks: allOf(is("round_trip", true), is("end", "fixed")),
	}}
}

// StatedRules is the rule of BrokenRules.
func (IssueKey) StatedRules() []shape.Rule {
	return []shape.Rule{{
		Text: "origins go with a publishable key only", Breaks: allOf(anyOf(given("origins")...), not(is("kind", "publishable"))),
	}}
}

// StatedRules are the rules of BrokenRules.
func (IssueToken) StatedRules() []shape.Rule {
	account, needs := anyOf(given("account")...), is("role", "customer", "agency")
	return []shape.Rule{
		{Text: "account is required for the roles customer and agency", Breaks: allOf(needs, not(account))},
		{Text: "account goes with the roles customer and agency only", Breaks: allOf(account, not(needs))},
	}
}

// StatedRules are those of the token that the invitation makes.
func (Invite) StatedRules() []shape.Rule { return IssueToken{}.StatedRules() }

// StatedRules is the rule of BrokenRules.
func (HistoryQuery) StatedRules() []shape.Rule {
	return []shape.Rule{{Text: "from must not be after to"}}
}

// textRule are rules of every text and of every query, as the decoder keeps them.
const textRule = "NUL characters are not permitted in a text. An empty parameter counts as left out, unless the document says which words or which pattern it has."

var (
	latWithLon = together("lat and lon go together", "lat", "lon")
	matrixSize = shape.Rule{Text: "origins times destinations is at most 625"}
)

func destinationsInQuery() []shape.Rule {
	sites := is("sites", true)
	return []shape.Rule{
		{Text: destinationsOrSites, Breaks: allOf(anyOf(given("destinations")...), sites)},
		{Text: "referentiel and tags go with sites=true", Breaks: allOf(anyOf(given("referentiel", "tags")...), not(sites))},
		{Text: "destinations, or sites=true, is there", Breaks: not(anyOf(append(given("destinations"), sites)...))},
	}
}

func destinationsInBody() []shape.Rule {
	return []shape.Rule{
		{Text: destinationsOrSites, Breaks: allOf(anyOf(given("destinations")...), anyOf(given("sites")...))},
		oneOfThese("destinations or sites is there", given("destinations", "sites")),
	}
}

// together is the rule that of two members none is there without the other.
func together(text, a, b string) shape.Rule {
	first, second := given(a)[0], given(b)[0]
	return shape.Rule{Text: text, Breaks: anyOf(allOf(first, not(second)), allOf(second, not(first)))}
}

// oneOfThese is the rule that one of several schemas fits.
func oneOfThese(text string, all []*jsonschema.Schema) shape.Rule {
	return shape.Rule{Text: text, Breaks: not(anyOf(all...))}
}

// given fits the objects that have a member, one schema for each name. An empty text or list counts as left out.
func given(names ...string) (all []*jsonschema.Schema) {
	for _, name := range names {
		least := 1
		all = append(all, &jsonschema.Schema{
			Required:   []string{name},
			Properties: map[string]*jsonschema.Schema{name: {MinLength: &least, MinItems: &least}},
		})
	}
	return all
}

// is fits the objects whose member has one of some values.
func is(name string, values ...any) *jsonschema.Schema {
	return &jsonschema.Schema{Required: []string{name}, Properties: map[string]*jsonschema.Schema{name: {Enum: values}}}
}

// hasItemOutside fits the objects with a list in which a number is out of its bounds.
func hasItemOutside(name string, least, most float64) *jsonschema.Schema {
	inside := &jsonschema.Schema{Items: &jsonschema.Schema{Minimum: &least, Maximum: &most}}
	return &jsonschema.Schema{Required: []string{name}, Properties: map[string]*jsonschema.Schema{name: not(inside)}}
}

func not(s *jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{Not: s} }

func allOf(all ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AllOf: all} }

// anyOf fits what any of the schemas fits.
func anyOf(all ...*jsonschema.Schema) *jsonschema.Schema {
	if len(all) == 1 {
		return all[0]
	}
	return &jsonschema.Schema{AnyOf: all}
}
