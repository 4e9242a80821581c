package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/cmd/lieudit/service"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
)

// TestWhatAnotherAccountHasChangesNoAnswer asks every operation on places with a fresh account, then again with another
// fresh one when a third has sites under the very same names: each answer is the same, and the third's sites stay.
func TestWhatAnotherAccountHasChangesNoAnswer(t *testing.T) {
	t.Parallel()
	st := raise(t, func(*service.Config) {})
	open := func(id string) string {
		st.run(t, "account open "+id+" --id "+id+" --plan STARTER")
		return strings.TrimSpace(st.run(t, "key issue "+id))
	}
	alone := st.tour(t, open("alone"))

	rich := open("rich")
	st.send(t, rich, "POST /locations/referentiels", `{"code":"shops","nom":"Secret"}`)
	st.send(t, rich, "POST /locations/referentiels", `{"code":"archived"}`)
	st.send(t, rich, "POST /locations/referentiels/shops/sites:sync", `{"sites":[`+rowsOf(t, "1-200")+`]}`)
	const all = "GET /locations/search?statut=tous&limit=100"
	before := st.send(t, rich, all, "")

	beside := st.tour(t, open("beside"))
	for i, operation := range tour() {
		if diff := cmp.Diff(alone[i], beside[i]); diff != "" {
			t.Errorf("%s %s (-alone +beside another):\n%s", operation.Method, operation.Path, diff)
		}
	}
	// A cursor is sealed anew each time.
	if after := st.send(t, rich, all, ""); strings.Split(after, `"curseur"`)[0] != strings.Split(before, `"curseur"`)[0] {
		t.Errorf("sites changed: %.1000s", after)
	}
}

// tour is every operation on places, twice: where nothing is yet, and where the first round left something.
func tour() []openapi.Operation {
	var all []openapi.Operation
	for _, op := range body.API().Operations {
		if strings.HasPrefix(op.Path, "/locations/") || op.Path == "/me" {
			all = append(all, op)
		}
	}
	return append(all, all...)
}

// varyingIDs are those of keys.
var varyingIDs = regexp.MustCompile(`"id": "[^"]*"`)

// bodies are what operations are asked with, by what their path ends with.
var bodies = map[string]string{
	"/referentiels": `{"code":"shops"}`, "/{code}": `{"nom":"X"}`, ":sync": `{"sites":[` + `{"external_id":"s001","nom":"Boutique"},{"external_id":"s002"}` + `],"confirmer_reduction":true}`,
	":upsert": `{"sites":[{"external_id":"s003"}]}`, "/{external_id}": `{"nom":"Y"}`, ":deactivate": `{}`, ":reactivate": `{}`,
}

// tour asks for the tour and returns the answers, without what no two runs share.
func (st *stage) tour(t *testing.T, key string) []string {
	t.Helper()
	var answers []string
	for i, op := range tour() {
		content := ""
		for ending, text := range bodies {
			if strings.HasSuffix(op.Path, ending) && op.Body != nil {
				content = text
			}
		}
		path := strings.NewReplacer("{code}", "shops", "{external_id}", "s001").Replace(op.Path)
		if op.Method == http.MethodDelete && i < len(tour())/2 {
			path = "/locations/referentiels/archived" // so that the second round finds something
		}
		req, err := http.NewRequestWithContext(t.Context(), op.Method, st.api+path, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := st.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		names := names{"account": "alone", "account2": "beside"}
		text := strings.ReplaceAll(names.hide(tell(t, resp)), "${account2}", "${account}")
		resp.Body.Close()
		answers = append(answers, op.Method+" "+path+"\n"+varyingIDs.ReplaceAllString(text, `"id": ""`))
	}
	return answers
}
