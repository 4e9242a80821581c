package kit_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/plan"
)

// sync is a body with a field of every kind.
type sync struct {
	Sites   []site                   `json:"sites" max:"5"`
	Confirm bool                     `json:"confirmer_reduction,omitempty"`
	Label   string                   `json:"label,omitempty" min:"1" max:"10"`
	Kind    string                   `json:"kind,omitempty" enum:"secret publishable"`
	Q       string                   `json:"q,omitempty" max:"5" syntax:"true"`
	Count   int                      `json:"count,omitempty" min:"1" max:"20" default:"7"`
	Big     int64                    `json:"big,omitempty"`
	Ratio   *float64                 `json:"ratio,omitempty" min:"-1.5" max:"1.5"`
	Day     plan.Date                `json:"day,omitzero"`
	At      time.Time                `json:"at,omitzero"`
	Agency  shape.Nullable[string]   `json:"agence_de,omitzero" pattern:"^[a-z]{1,4}$"`
	Extra   json.RawMessage          `json:"proprietes,omitempty"`
	Tags    []string                 `json:"tags,omitempty" max:"3" enum:"a b c"`
	Marks   []string                 `json:"marks,omitempty" each:"1 3" unique:"items"`
	Free    json.RawMessage          `json:"libre,omitempty" members:"2" bytes:"20"`
	Patch   shape.Nullable[listItem] `json:"patch,omitzero"`
	Skipped shape.Ignored            `json:"actif,omitzero"`
	Where   spot                     `json:"ou,omitzero" syntax:"true"`
	Spots   []spot                   `json:"lieux,omitempty" max:"2"`
}

// spot is a level and a door, for which the text 3/B may stand.
type spot struct {
	Level int    `json:"etage,omitempty" min:"0" max:"9"`
	Door  string `json:"porte,omitempty"`
}

func (s *spot) TextLength() (shortest, longest int) { return 1, 4 }

func (s *spot) SetText(text string) error {
	level, door, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(level)
	if !ok || err != nil {
		return errors.New("a spot is a level, a slash and a door")
	}
	s.Level, s.Door = n, door
	return nil
}

// BrokenRules checks an object alone: a text has been checked.
func (s *spot) BrokenRules() []string {
	if s.Level > 0 && s.Door == "" {
		return []string{"a level needs a door"}
	}
	return nil
}

type site struct {
	ID    string    `json:"external_id" pattern:"^[A-Za-z0-9]{1,8}$"`
	Lat   *float64  `json:"lat,omitempty" min:"-90" max:"90"`
	Lon   *float64  `json:"lon,omitempty" min:"-180" max:"180"`
	Inner *listItem `json:"adresse,omitempty"`
}

// BrokenRules checks that no coordinate is sent without the other.
func (s site) BrokenRules() []string {
	if (s.Lat == nil) != (s.Lon == nil) {
		return []string{"lat and lon go together"}
	}
	return nil
}

type listItem struct {
	City string `json:"commune"`
}

// filter is a query with a parameter of every kind.
type filter struct {
	Q     string    `json:"q" max:"5" syntax:"true"`
	Limit int       `json:"limit,omitempty" min:"1" max:"20" default:"5"`
	Lat   *float64  `json:"lat,omitempty" min:"-90" max:"90"`
	Lon   *float64  `json:"lon,omitempty" min:"-180" max:"180"`
	Min   *int64    `json:"population_min,omitempty" min:"0"`
	Max   *int64    `json:"population_max,omitempty" min:"0"`
	Auto  bool      `json:"autocomplete,omitempty" default:"true"`
	Type  []string  `json:"type,omitempty" enum:"street municipality" max:"2"`
	Day   plan.Date `json:"day,omitzero"`
	At    time.Time `json:"at,omitzero"`
	Sort  string    `json:"sort,omitempty" enum:"nom distance" default:"nom"`
	Where spot      `json:"ou,omitzero"`
	Spots []spot    `json:"lieux,omitempty" max:"2"`
}

func (f filter) BrokenRules() (rules []string) {
	if f.Min != nil && f.Max != nil && *f.Min > *f.Max {
		rules = append(rules, "population_min must be less than or equal to population_max")
	}
	if (f.Lat == nil) != (f.Lon == nil) {
		rules = append(rules, "lat and lon go together")
	}
	return rules
}

const (
	malformed = 400
	tooLarge  = 413
)

// problemOf is the answer an error gets: its status, and each violation as "type loc input".
func problemOf(t *testing.T, err error) (status int, violations []string) {
	t.Helper()
	if err == nil {
		return 0, nil
	}
	if _, known := problem.FromError(err); !known {
		t.Fatalf("%v is no problem", err)
	}
	w := httptest.NewRecorder()
	kit.WriteError(w, slog.New(slog.DiscardHandler), err)
	var answer struct{ Detail []map[string]json.RawMessage }
	if w.Code == 422 {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
	}
	for _, v := range answer.Detail {
		if len(v) != 4 || len(v["msg"]) < 5 || !strings.HasPrefix(string(v["input"]), "{") {
			t.Errorf("violation %s is not of the specified form", v)
		}
		violations = append(violations, strings.Trim(string(v["type"]), `"`)+" "+string(v["loc"])+" "+string(v["input"]))
	}
	return w.Code, violations
}
