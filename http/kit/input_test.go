package kit_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/http/kit"
	"lieudit/http/problem"
)

// inputOf is the input of the first violation in an error, as JSON.
func inputOf(t *testing.T, err error) string {
	t.Helper()
	p, ok := problem.FromError(err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var sent struct {
		Detail []struct{ Input json.RawMessage }
	}
	text, _ := json.Marshal(p.Body)
	if json.Unmarshal(text, &sent) != nil || len(sent.Detail) == 0 {
		t.Fatalf("got %s", text)
	}
	return string(sent.Detail[0].Input)
}

func TestAViolationFoundByAnOperationEchoesTheObjectThatHoldsTheField(t *testing.T) {
	t.Parallel()
	type request struct {
		ID   string `json:"id,omitempty"`
		Name string `json:"nom,omitempty"`
	}
	for _, c := range []struct {
		name, target, body string
		refused            error
		want               string
	}{
		{"of a query", "/?q=a&period=b", "", problem.BrokenRule("query", "period", "value_error", ""), `{"period":"b","q":"a"}`},
		{"of a large query", "/?q=a&period=" + strings.Repeat("b", 5000), "", problem.BrokenRule("query", "q", "value_error", ""), `{"q":"a"}`},
		{"of a path", "/", "", problem.BrokenRule("path", "code", "value_error", ""), `{"code":"shops"}`},
		{"of a body", "/", `{"id":"a", "nom":"b"}`, problem.BrokenRule("body", "id", "value_error", ""), `{"id":"a","nom":"b"}`},
		{"of a body that lacks it", "/", `{"nom":"b"}`, problem.BrokenRule("body", "id", "value_error", ""), `{"nom":"b"}`},
		{"of a large body", "/", `{"id":"a","nom":"` + strings.Repeat("b", 5000) + `"}`, problem.BrokenRule("body", "id", "value_error", ""), `{"id":"a"}`},
		{"of a body too large to be kept", "/", `{"id":"a","nom":"` + strings.Repeat("b", 100_000) + `"}`, problem.BrokenRule("body", "id", "value_error", ""), `{}`},
	} {
		refuse := func(context.Context, kit.Call[struct{}], request) (kit.Response, error) {
			return kit.Response{}, c.refused
		}
		endpoint := kit.BodyEndpoint(refuse)
		if c.body == "" {
			endpoint = kit.NewEndpoint(kit.NewDecoder[request]().DecodeOpenQuery, refuse)
		}
		operation, err := endpoint(httptest.NewRequest("POST", c.target, strings.NewReader(c.body)))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, err = operation(t.Context(), kit.Call[struct{}]{Vars: map[string]string{"code": "shops"}})
		if got := inputOf(t, err); got != c.want {
			t.Errorf("%s: got %.200s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheHoldingObjectIsTheInnermostOnTheWay(t *testing.T) {
	t.Parallel()
	const text = `{"a":1,"horaires":{"hebdo":[{"de":"9"},{"de":"8","a":"7"}]},"tags":["x","y"]}`
	for _, c := range []struct {
		place []any
		want  string
	}{
		{nil, text},
		{[]any{"a"}, text},
		{[]any{"absent", "member"}, text},
		{[]any{"tags", 1}, text},
		{[]any{"horaires", "texte"}, `{"hebdo":[{"de":"9"},{"de":"8","a":"7"}]}`},
		{[]any{"horaires", "hebdo", 1, "de"}, `{"de":"8","a":"7"}`},
		{[]any{"horaires", "hebdo", 1}, `{"de":"8","a":"7"}`},
		{[]any{"horaires", "hebdo", 7, "de"}, `{"hebdo":[{"de":"9"},{"de":"8","a":"7"}]}`},
	} {
		got, _ := json.Marshal(kit.HoldingObject(json.RawMessage(text), c.place))
		if string(got) != c.want {
			t.Errorf("%v: got %s, want %s", c.place, got, c.want)
		}
	}
	for _, text := range []string{``, `7`, `[`, `{"a":`} {
		if got, _ := json.Marshal(kit.HoldingObject(json.RawMessage(text), []any{"a"})); string(got) != "{}" {
			t.Errorf("%s: got %s, want {}", text, got)
		}
	}
}
