package reference

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"sync"

	"lieudit/http/pages/i18n"
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/body/shape"
)

// Field is a parameter of a request, or a member of a body or an answer.
type Field struct {
	Name       string
	Type       i18n.Text
	Doc        Words
	IsRequired bool
	Default    string
	Values     []string    // those allowed
	Pattern    string      // of the text
	Limits     []i18n.Text // such as at most 200 characters
	IsList     bool
	Fields     []Field // of an object, or of the objects of a list
}

//go:embed french.json
var frenchText []byte

// french has the French of texts of the OpenAPI documents, by the English one. So a text whose English changes has no French until somebody
// has looked at it again, which a test finds for the API.
var french = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	if err := json.Unmarshal(frenchText, &all); err != nil {
		panic(err) // the file is part of the program
	}
	return all
})

// Words is a text of the OpenAPI documents in both languages. Without a translation its French is the English.
type Words struct {
	i18n.Text
	IsForeign bool // there is no French
}

func translate(text string) Words {
	if fr, ok := french()[text]; ok || text == "" {
		return Words{Text: i18n.Text{FR: fr, EN: text}}
	}
	return Words{i18n.Text{FR: text, EN: text}, true}
}

// reader reads the structs of operations.
type reader struct {
	forms     map[string]any
	variables map[string]openapi.Variable
}

var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

// method is what a method takes.
func (r *reader) method(op openapi.Operation) Method {
	m := Method{Method: op.Method, Path: op.Path, Slug: openapi.OperationID(op), Query: r.fieldsOf(op.Query), Body: r.fieldsOf(op.Body), Form: r.fieldsOf(op.Form)}
	for _, found := range pathVariable.FindAllStringSubmatch(op.Path, -1) {
		v := r.variables[found[1]]
		m.Variables = append(m.Variables, Field{Name: found[1], Type: typeNames[shape.Text], Doc: translate(v.Doc), IsRequired: true, Pattern: v.Pattern})
	}
	for _, h := range op.Headers {
		m.Headers = append(m.Headers, Field{Name: h.Name, Type: typeNames[shape.Text], Doc: translate(h.Doc), Pattern: h.Pattern})
	}
	for _, v := range []any{op.Query, op.Body} {
		if stater, ok := v.(shape.RuleStater); ok {
			for _, rule := range stater.StatedRules() {
				m.Rules = append(m.Rules, translate(rule.Text))
			}
		}
	}
	return m
}

// answers are the forms of an operation's answer.
func (r *reader) answers(op openapi.Operation) (all []Answer) {
	status := op.Status
	if status == 0 {
		status = http.StatusOK
	}
	usual := Answer{Status: status, Fields: r.fieldsOf(op.Answer), MediaTypes: op.OtherMediaTypes}
	if op.Answer != nil {
		usual.MediaTypes = append([]string{"application/json"}, usual.MediaTypes...)
	}
	if op.Collection != nil {
		usual.MediaTypes = append(usual.MediaTypes, "application/geo+json")
	}
	all = append(all, usual)
	for _, v := range op.OtherAnswers {
		all = append(all, Answer{When: whenOf[reflect.TypeOf(v).Name()], Status: status, Fields: r.fieldsOf(v)})
	}
	if op.Collection != nil {
		all = append(all, Answer{When: whenOf["FeatureCollection"], Status: status, Fields: r.fieldsOf(op.Collection)})
	}
	return all
}

// whenOf is when an operation answers with another struct than its usual one.
var whenOf = map[string]i18n.Text{
	"FeatureCollection":  {FR: "Avec format=geojson", EN: "With format=geojson"},
	"LocationCollection": {FR: "Avec format=geojson", EN: "With format=geojson"},
	"PublicLocations":    {FR: "À une clé publiable", EN: "To a publishable key"},
	"PublicCollection":   {FR: "À une clé publiable, avec format=geojson", EN: "To a publishable key, with format=geojson"},
	"NoResults":          {FR: "Quand rien n’est trouvé", EN: "When nothing is found"},
	"NoRoute":            {FR: "Quand rien n’est trouvé", EN: "When nothing is found"},
}

// fieldsOf are the members of a struct; nil has none.
func (r *reader) fieldsOf(v any) []Field {
	if v == nil {
		return nil
	}
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		panic(err) // the tests of the OpenAPI documents find it first
	}
	return r.members(s)
}

// members are the members of an object, without those that are not read.
func (r *reader) members(s *shape.Shape) (all []Field) {
	for _, f := range s.Fields {
		if f.GoType != reflect.TypeFor[shape.Ignored]() {
			all = append(all, r.field(f))
		}
	}
	return all
}

func (r *reader) field(f shape.Field) Field {
	out := Field{
		Name: f.Name, Type: r.typeOf(f.Shape), Doc: translate(f.Doc), IsRequired: f.Required, Default: f.Default, IsList: f.Kind == shape.List,
		Limits: limitsOf(f.Shape),
	}
	if f.Kind == shape.Boolean && out.Default != "" { // clients of the former API write 1 and 0
		isTrue, _ := strconv.ParseBool(out.Default)
		out.Default = strconv.FormatBool(isTrue)
	}
	inner := f.Shape
	for inner.Kind == shape.List {
		inner = inner.Item
		out.Limits = append(out.Limits, limitsOf(inner)...)
	}
	out.Values = inner.Enum
	if inner.Pattern != nil {
		out.Pattern = inner.Pattern.String()
	}
	switch {
	case inner.Form != "" && r.forms[inner.Form] != nil:
		out.Fields = r.fieldsOf(r.forms[inner.Form])
	case inner.Kind == shape.Object:
		out.Fields = r.members(inner)
	}
	return out
}

var typeNames = map[shape.Kind]i18n.Text{
	shape.Any:     {FR: "JSON libre", EN: "any JSON"},
	shape.Object:  {FR: "objet", EN: "object"},
	shape.Text:    {FR: "texte", EN: "text"},
	shape.Date:    {FR: "date AAAA-MM-JJ", EN: "date YYYY-MM-DD"},
	shape.Instant: {FR: "instant RFC 3339", EN: "instant, RFC 3339"},
	shape.Integer: {FR: "nombre entier", EN: "whole number"},
	shape.Number:  {FR: "nombre", EN: "number"},
	shape.Boolean: {FR: "true ou false", EN: "true or false"},
}

// typeOf is the type of a value in words.
func (r *reader) typeOf(s *shape.Shape) i18n.Text {
	name := typeNames[s.Kind]
	switch {
	case s.Kind == shape.List:
		item := r.typeOf(s.Item)
		name = i18n.Text{FR: "liste (" + item.FR + ")", EN: "list (" + item.EN + ")"}
	case s.Text != nil:
		name = i18n.Text{FR: "texte ou objet", EN: "text or object"}
	case s.Form != "", s.MaxMembers > 0:
		name = typeNames[shape.Object]
	}
	if s.Nullable {
		name = i18n.Text{FR: name.FR + " ou null", EN: name.EN + " or null"}
	}
	return name
}

// limitsOf are the bounds of a value in words.
func limitsOf(s *shape.Shape) (all []i18n.Text) {
	add := func(bound *float64, frOne, enOne, frSuffix, enSuffix string) {
		if bound != nil && !(s.Kind == shape.Text && *bound <= 1) {
			n := strconv.FormatFloat(*bound, 'f', -1, 64)
			all = append(all, i18n.Text{FR: frOne + " " + n + frSuffix, EN: enOne + " " + n + enSuffix})
		}
	}
	frUnit, enUnit := "", ""
	switch s.Kind {
	case shape.Text:
		frUnit, enUnit = " caractères", " characters"
	case shape.List:
		frUnit, enUnit = " éléments", " items"
		if s.Max != nil && *s.Max == 0 {
			return []i18n.Text{{FR: "toujours vide", EN: "always empty"}}
		}
	}
	add(s.Min, "au moins", "at least", frUnit, enUnit)
	add(s.Max, "au plus", "at most", frUnit, enUnit)
	return all
}
