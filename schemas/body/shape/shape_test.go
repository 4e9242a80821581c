package shape_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

type envelope struct {
	Status string `json:"status" doc:"How it went"`
}

type sample struct {
	envelope
	Name   string                 `json:"nom" min:"1" max:"3" pattern:"^[a-z]+$" doc:"A name"`
	Kind   plan.Name              `json:"kind,omitempty" enum:"A B" default:"A"`
	Count  int                    `json:"count,omitempty" min:"1" max:"20" default:"5"`
	Ratio  *float64               `json:"ratio,omitempty" min:"-1.5"`
	Yes    bool                   `json:"yes,omitempty" default:"true"`
	Day    plan.Date              `json:"day,omitzero"`
	At     time.Time              `json:"at,omitzero"`
	Tags   []string               `json:"tags,omitempty" max:"2" enum:"x y"`
	Agency shape.Nullable[string] `json:"agency,omitzero" pattern:"^a"`
	Any    json.RawMessage        `json:"any,omitempty"`
	Inner  *envelope              `json:"inner,omitempty"`
	hidden string
}

func schema(t *testing.T, v any, style shape.SchemaOptions) string {
	t.Helper()
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s.Schema(style))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAStructGivesItsSchema(t *testing.T) {
	t.Parallel()
	got := schema(t, sample{hidden: "unused"}, shape.SchemaOptions{IsClosed: true})
	inner := `{"type":"object","properties":{"status":{"type":"string","description":"How it went"}},"required":["status"],"additionalProperties":false}`
	want := `{"type":"object","properties":{` + strings.Join([]string{
		`"status":{"type":"string","description":"How it went"}`,
		`"nom":{"type":"string","description":"A name","minLength":1,"maxLength":3,"pattern":"^[a-z]+$"}`,
		`"kind":{"type":"string","default":"A","enum":["A","B"]}`,
		`"count":{"type":"integer","default":5,"minimum":1,"maximum":20}`,
		`"ratio":{"type":"number","minimum":-1.5}`,
		`"yes":{"type":"boolean","default":true}`,
		`"day":{"type":"string","format":"date"}`,
		`"at":{"type":"string","format":"date-time"}`,
		`"tags":{"type":"array","items":{"type":"string","enum":["x","y"]},"maxItems":2}`,
		`"agency":{"type":["null","string"],"pattern":"^a"}`,
		`"any":true`,
		`"inner":` + inner,
	}, ",") + `},"required":["status","nom"],"additionalProperties":false}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type written struct {
	Place place `json:"ou" doc:"Where"`
}

// place may be written as a text.
type place struct {
	Door string `json:"porte"`
}

func (p *place) SetText(text string) error           { p.Door = text; return nil }
func (p *place) TextLength() (shortest, longest int) { return 1, 9 }

func TestAnObjectWithATextFormIsEither(t *testing.T) {
	t.Parallel()
	text := `{"type":"string","minLength":1,"maxLength":9}`
	object := `{"type":"object","properties":{"porte":{"type":"string"}},"required":["porte"]}`
	if got, want := schema(t, []place{}, shape.SchemaOptions{}), `{"type":"array","items":{"anyOf":[`+text+`,`+object+`]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := schema(t, []place{}, shape.SchemaOptions{IsQuery: true}), `{"type":"array","items":`+text+`}`; got != want {
		t.Errorf("in a query: got  %s\nwant %s", got, want)
	}
	if got := schema(t, written{}, shape.SchemaOptions{}); !strings.Contains(got, `"ou":{"description":"Where","anyOf":[`) {
		t.Errorf("got %s", got)
	}
}

func TestNamedObjectsCanBeReferences(t *testing.T) {
	t.Parallel()
	ref := func(s *shape.Shape) string {
		if s.Kind == shape.Object && s.StructType() == reflect.TypeFor[envelope]() {
			return "#/elsewhere"
		}
		return ""
	}
	if got := schema(t, sample{}, shape.SchemaOptions{Ref: ref}); !strings.Contains(got, `"inner":{"$ref":"#/elsewhere"}`) {
		t.Errorf("inner is written out: %s", got)
	}
}

func TestAnInvalidTagIsAnError(t *testing.T) {
	t.Parallel()
	for why, v := range map[string]any{
		"no json name": struct{ X string }{},
		"X: strconv": struct {
			X int `json:"x" min:"a"`
		}{},
		"invalid syntax": struct {
			X int `json:"x" max:"1,5"`
		}{},
		"missing closing": struct {
			X string `json:"x" pattern:"["`
		}{},
		"no shape": struct {
			X chan int `json:"x"`
		}{},
		"Y": struct {
			X []struct {
				Y map[string]int `json:"y"`
			} `json:"x"`
		}{},
	} {
		if s, err := shape.FromType(reflect.TypeOf(v)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%T: %v, %v; want an error with %q", v, s, err, why)
		}
	}
}

func TestNullableDistinguishesLeftOutFromNull(t *testing.T) {
	t.Parallel()
	type wish struct {
		Agency shape.Nullable[string] `json:"agency,omitzero"`
	}
	for text, want := range map[string]wish{
		`{}`:                {},
		`{"agency":null}`:   {shape.Nullable[string]{IsGiven: true}},
		`{"agency":"acme"}`: {shape.Nullable[string]{IsGiven: true, Value: new("acme")}},
	} {
		var got wish
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != text {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
}

type bounded struct {
	Words   []string                        `json:"words,omitempty" each:"1 64" unique:"items"`
	Rows    []envelope                      `json:"rows,omitempty" unique:"status"`
	Free    json.RawMessage                 `json:"free,omitempty" members:"50" bytes:"16384"`
	Patch   shape.Nullable[json.RawMessage] `json:"patch,omitzero" members:"2"`
	Any     shape.Nullable[json.RawMessage] `json:"any,omitzero"`
	Inner   shape.Nullable[envelope]        `json:"inner,omitzero"`
	Skipped shape.Ignored                   `json:"skipped,omitzero"`
}

func TestFreeJSONAndListsHaveTheirBoundsInTheSchema(t *testing.T) {
	t.Parallel()
	inner := `{"type":"object","properties":{"status":{"type":"string","description":"How it went"}},"required":["status"]}`
	ref := func(s *shape.Shape) string {
		if s.Kind == shape.Object && s.StructType() == reflect.TypeFor[envelope]() && s.Nullable {
			return "#/elsewhere"
		}
		return ""
	}
	want := `{"type":"object","properties":{` + strings.Join([]string{
		`"words":{"type":"array","items":{"type":"string","minLength":1,"maxLength":64},"uniqueItems":true}`,
		`"rows":{"type":"array","items":` + inner + `}`,
		`"free":{"type":"object","maxProperties":50,"additionalProperties":{"description":"Of any type"}}`,
		`"patch":{"type":["null","object"],"maxProperties":2,"additionalProperties":{"description":"Of any type"}}`,
		`"any":true`,
		`"inner":{"anyOf":[{"$ref":"#/elsewhere"},{"type":"null"}]}`,
		`"skipped":true`,
	}, ",") + `}}`
	if got := schema(t, bounded{}, shape.SchemaOptions{Ref: ref}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBoundsThatAreNoNumbersAreErrors(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		struct {
			X json.RawMessage `json:"x" members:"many"`
		}{},
		struct {
			X json.RawMessage `json:"x" bytes:"1k"`
		}{},
		struct {
			X []string `json:"x" each:"a 3"`
		}{},
		struct {
			X []string `json:"x" each:"1 b"`
		}{},
	} {
		if _, err := shape.FromType(reflect.TypeOf(v)); err == nil {
			t.Errorf("%T is read", v)
		}
	}
}
