package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

type contact struct {
	Phone Personal
	Role  string
}

type base struct{ Name Personal }

// visited has personal texts wherever one can be.
type visited struct {
	base
	Plain    string
	At       time.Time
	Main     contact
	Deputy   *contact
	Others   []contact
	Emails   []Personal
	Two      [2]Personal
	ByHour   map[string]Personal
	ByDay    map[int][]*contact
	Empty    Personal
	NoDeputy *contact
	None     []contact
}

func (visited) EventType() string { return "test.visited.v1" }

func newVisited() visited {
	return visited{
		base: base{"p1"}, Plain: "clear", Main: contact{"p2", "r"}, Deputy: &contact{"p3", "r"},
		Others: []contact{{"p4", "r"}, {"p5", "r"}}, Emails: []Personal{"p6"}, Two: [2]Personal{"p7", "p8"},
		ByHour: map[string]Personal{"k": "p9"}, ByDay: map[int][]*contact{1: {{"p10", "r"}}},
	}
}

func TestPersonalTextIsFoundInEverythingAnEventCanHold(t *testing.T) {
	t.Parallel()
	line := define[visited]("visited")
	if line.Validate() != nil || line.PersonalFieldCount() != 11 {
		t.Fatalf("%d places, %v, want 11", line.PersonalFieldCount(), line.Validate())
	}
	in := newVisited()
	var found []string
	out, err := line.mapPersonal(in, func(p Personal) (Personal, error) {
		found = append(found, string(p))
		return "hidden", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if got, want := strings.Join(found, " "), "p1 p10 p2 p3 p4 p5 p6 p7 p8 p9"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	text, err := json.Marshal(out)
	if err != nil || strings.Count(string(text), "hidden") != 10 || strings.Contains(string(text), `"p`) {
		t.Errorf("got %s, %v", text, err)
	}
	before, _ := json.Marshal(newVisited())
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Errorf("the event itself became %s", after)
	}
}

func TestAFailureOnOnePersonalTextFailsTheEvent(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for n := range 10 {
		_, err := define[visited]("visited").mapPersonal(newVisited(), func(p Personal) (Personal, error) {
			if string(p) == fmt.Sprintf("p%d", n+1) {
				return "", refused
			}
			return p, nil
		})
		if !errors.Is(err, refused) {
			t.Errorf("p%d: got %v, want %v", n+1, err, refused)
		}
	}
}

type (
	anything struct{ Value any }
	keyed    struct{ Names map[Personal]int }
	nested   struct {
		Name  Personal
		Inner []nested
	}
	pointed struct{ *base }
)

func (anything) EventType() string { return "test.anything.v1" }
func (keyed) EventType() string    { return "test.keyed.v1" }
func (nested) EventType() string   { return "test.nested.v1" }
func (pointed) EventType() string  { return "test.pointed.v1" }

func TestATypeThatCouldHidePersonalTextIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line Type
		e    Event
	}{
		{define[anything]("x"), anything{Personal("p")}}, {define[keyed]("x"), keyed{map[Personal]int{"p": 1}}},
		{define[nested]("x"), nested{Name: "p"}}, {define[pointed]("x"), pointed{&base{"p"}}},
	} {
		_, err := c.line.mapPersonal(c.e, func(p Personal) (Personal, error) { return p, nil })
		if c.line.Validate() == nil || err == nil {
			t.Errorf("%s: registered with %v, encoded with %v, want both refused", c.line.Name, c.line.Validate(), err)
		}
	}
	for _, line := range All() {
		if err := line.Validate(); err != nil {
			t.Errorf("%s: %v", line.Name, err)
		}
	}
}
