package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lieudit/schemas/plan"
)

// variables are the words of a scene that differ from run to run.
type variables map[string]string

// storeFields names the texts of an answer.
func (n variables) storeFields(t *testing.T, name, answer string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(answer), &fields); err != nil {
		t.Fatalf("%s: %v in %q", name, err, answer)
	}
	for field, value := range fields {
		if text, ok := value.(string); ok {
			n[name+"."+field] = text
		}
	}
	if text, ok := fields["token"].(string); ok {
		n[name] = text
		delete(n, name+".token")
	}
}

// substitute puts the words in. ${x*1000} is a thousand x, ${sites 3-5} the rows of three sites, and ${today} the day in Paris.
func (n variables) substitute(t *testing.T, text string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{[^}]+\}`).ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if value, ok := n[name]; ok {
			return value
		}
		if name == "today" {
			return plan.DateOf(time.Now()).String()
		}
		if span, ok := strings.CutPrefix(name, "sites "); ok {
			return siteRows(t, span)
		}
		part, times, ok := strings.Cut(name, "*")
		count, err := strconv.Atoi(times)
		if !ok || err != nil {
			t.Fatalf("nothing is named %s", found)
		}
		return strings.Repeat(part, count)
	})
}

// siteRows is the rows of sites from one number to another, as a body has them.
func siteRows(t *testing.T, span string) string {
	t.Helper()
	var first, last int
	if _, err := fmt.Sscanf(span, "%d-%d", &first, &last); err != nil {
		t.Fatalf("sites %s: %v", span, err)
	}
	var rows []string
	for i := first; i <= last; i++ {
		rows = append(rows, fmt.Sprintf(`{"external_id":"s%03d","nom":"Boutique %d","lat":%.3f,"lon":3.5}`, i, i, 44+float64(i)/1000))
	}
	return strings.Join(rows, ",")
}

// maskValues takes the words out again, the longest first, and then whatever else no two runs share.
func (n variables) maskValues(text string) string {
	neverMasked := regexp.MustCompile(`\.(label|kind|role|cree_par|account)$`)
	keys := make([]string, 0, len(n))
	for k, v := range n {
		if v != "" && !neverMasked.MatchString(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := len(n[b]) - len(n[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		text = strings.ReplaceAll(text, n[k], "${"+k+"}")
	}
	for _, v := range variablePatterns() {
		text = v.pattern.ReplaceAllString(text, v.name)
	}
	return strings.ReplaceAll(text, plan.DateOf(time.Now()).String(), "${today}")
}

// variablePatterns is what no two runs share.
func variablePatterns() []struct {
	pattern *regexp.Regexp
	name    string
} {
	return []struct {
		pattern *regexp.Regexp
		name    string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "$${time}"},
		{regexp.MustCompile(`ld_(sk|pk|ct)_[0-9A-Za-z]{38}`), "ld_${1}_$${token}"},
		{regexp.MustCompile(`ld_(sk|pk|ct)_…[0-9A-Za-z]{4}`), "ld_${1}_…$${end}"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "$${uuid}"},
		{regexp.MustCompile(`"id": "[a-z2-7]{12}"`), `"id": "$${generated}"`},
		{regexp.MustCompile(`"(curseur|hash|proprietaire)": "[^"]+"`), `"$1": "$${$1}"`},
		{regexp.MustCompile(`"version": "[^"]+"`), `"version": "$${version}"`},
		{regexp.MustCompile(`"(position|retard)": \d+`), `"$1": $${$1}`},
		{regexp.MustCompile(`"(score|score_suivant|geocode_score)": 0\.\d+`), `"$1": $${score}`}, // tuned, and tested where they are made
	}
}
