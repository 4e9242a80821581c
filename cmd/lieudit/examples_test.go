package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"lieudit/http/pages/docs/reference"
)

// examplesFile has the examples that the documentation shows.
const examplesFile = "../../http/pages/docs/reference/examples.json"

// answerRecord keeps the scores of the answers that came, which scenarios mask, by file and title. It is safe for concurrent use.
type answerRecord struct {
	mu     sync.Mutex
	scores map[string][]string
}

var scorePattern = regexp.MustCompile(`"(score|score_suivant|geocode_score)": (0\.\d+)`)

// add keeps the scores of an answer.
func (a *answerRecord) add(file, title, answer string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.scores == nil {
		a.scores = map[string][]string{}
	}
	var scores []string
	for _, found := range scorePattern.FindAllStringSubmatch(answer, -1) {
		scores = append(scores, found[2])
	}
	a.scores[file+":"+title] = scores
}

// compareExamples holds the examples of the documentation to the scenarios. With -update it writes them anew, with the scores that came.
func compareExamples(t *testing.T, came *answerRecord) {
	t.Helper()
	var all []reference.Example
	if err := json.Unmarshal(mustReadFile(t, examplesFile), &all); err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		want := exampleOf(t, e)
		if *update {
			if scores, ok := came.scores[e.Scene+":"+e.Title]; ok {
				all[i] = want
				all[i].Answer = fillScores(want.Answer, scores)
			}
			continue
		}
		e.Answer = scorePattern.ReplaceAllString(e.Answer, `"$1": $${score}`)
		if diff := cmp.Diff(want, e); diff != "" {
			t.Errorf("the example %s: %s is not as its scenario (-want +got): run go test ./cmd/lieudit -run TestAPI -update\n%s", e.Scene, e.Title, diff)
		}
	}
	if *update {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(examplesFile, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fillScores puts scores in the place of the masks.
func fillScores(text string, scores []string) string {
	for _, s := range scores {
		text = strings.Replace(text, "${score}", s, 1)
	}
	return text
}

// exampleOf reads an example out of its scenario. Scores stay masked; whatever else differs from run to run becomes a sample.
func exampleOf(t *testing.T, e reference.Example) reference.Example {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata/api", e.Scene+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix("when: "+e.Title, ": ")
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("%s has no request %q", e.Scene, e.Title)
	}
	out := reference.Example{Operation: e.Operation, Scene: e.Scene, Title: e.Title}
	head, content, _ := strings.Cut(fillSamples(t, string(archive.Files[i].Data)), "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	target := strings.Fields(strings.TrimPrefix(lines[0], "area "))
	out.Request = reference.ExampleRequest{Method: target[0], Target: target[1], Body: strings.TrimSuffix(content, "\n")}
	for _, line := range lines[1:] {
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "Origin":
			out.Request.Origin = value
		case "Content-Type":
			out.Request.MediaType = value
		}
	}
	head, out.Answer, _ = strings.Cut(fillSamples(t, string(archive.Files[i+1].Data)), "\n\n")
	out.Answer = strings.TrimSuffix(out.Answer, "\n")
	lines = strings.Split(strings.TrimSpace(head), "\n")
	if out.Status, err = strconv.Atoi(lines[0]); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		if value, ok := strings.CutPrefix(line, "Content-Type: "); ok {
			out.MediaType = value
		}
	}
	return out
}

// samples are what examples show for the masks and names of scenarios.
var samples = map[string]string{
	"account": "mende", "other": "florac", "agency": "lozere", "time": "2026-11-21T09:30:00+01:00", "today": "2026-11-21",
	"uuid": "7d2f1c56-0a4b-4e1d-9c83-5b6a2f0e8d17", "generated": "q7m2x4c6n5ka", "end": "9fQ2", "token": "9fQ2xK7mT4bW8cZ1nR5vY3hL6pD0sJ2gA9eU4q",
	"curseur": "KkArfmE", "position": "1284", "retard": "0", "version": "1.4.0", "hash": "5f1d9c2e", "programme": "1.4.0", "proprietaire": "instance-1",
}

// fillSamples replaces the variables of a scenario by samples. Scores stay.
func fillSamples(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		sample, ok := samples[name]
		owner, field, isField := strings.Cut(name, ".")
		switch {
		case name == "score":
			return found
		case ok:
			return sample
		case isField && field == "id":
			return "q7m2x4c6n5ka"
		case isField && field == "hint":
			return map[bool]string{true: "ld_pk_…7aB1", false: "ld_sk_…9fQ2"}[owner == "PAGE"]
		case strings.HasPrefix(name, "sites "):
			return siteRows(t, strings.TrimPrefix(name, "sites "))
		case name == strings.ToUpper(name) || name == "operator":
			return "$LIEUDIT_" + name // in a header that examples leave out
		}
		t.Fatalf("there is no sample for %s", found)
		return ""
	})
}
