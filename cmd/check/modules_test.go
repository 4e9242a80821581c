package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNewerReleasesAreDescribedAlsoWhereSomeCannotBeListed(t *testing.T) {
	t.Parallel()
	const (
		current = `{"Path": "a.org/current", "Version": "v1.2.0"}`
		behind  = `{"Path": "a.org/behind", "Version": "v1.2.0", "Update": {"Path": "a.org/behind", "Version": "v1.3.0"}}`
		refused = `{"Path": "a.org/refused", "Version": "v4.2.0", "Error": {"Err": "403 Forbidden"}}`
		offline = `{"Path": "a.org/offline", "Version": "v0.1.0", "Error": {"Err": "403 Forbidden"}}`
	)
	for listed, want := range map[string][]string{
		"":                         {"none"},
		current:                    {"none"},
		current + behind:           {"a.org/behind v1.2.0: there is v1.3.0"},
		current + refused:          {"not listed, 1 of 2: a.org/refused: 403 Forbidden"},
		refused + behind + offline: {"a.org/behind v1.2.0: there is v1.3.0", "not listed, 2 of 3: a.org/refused, a.org/offline: 403 Forbidden"},
	} {
		all, err := decodeModules([]byte(listed))
		if got := describeReleases(all); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", listed, got, err, want)
		}
	}
	if _, err := decodeModules([]byte(current + "{")); err == nil {
		t.Error("a listing that was cut off was taken for a whole one")
	}
}

// The statuses and the messages are those of govulncheck 1.9.0.
func TestOnlyAVulnerabilityOrABrokenScanFailsTheCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script    string
		wantError string // "" for none
		wantShown string
	}{
		"nothing found":   {`echo "No vulnerabilities found."`, "", "none"},
		"something found": {`echo "Vulnerability #1: GO-2026-6061"; exit 3`, "found something", "GO-2026-6061"},
		"no network": {`echo 'govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": dial tcp: lookup vuln.go.dev: no such host' >&2; exit 1`,
			"", "NOT CHECKED: the database cannot be reached: Get"},
		"packages that do not build": {`echo "govulncheck: loading packages: There are errors with the provided package patterns" >&2; exit 1`, "loading packages", ""},
		"a crash":                    {`echo "panic: runtime error" >&2; exit 2`, "panic", ""},
	} {
		scanner := filepath.Join(t.TempDir(), "govulncheck")
		if err := os.WriteFile(scanner, []byte(test.script), 0o600); err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		err := runScanner(t.Context(), &shown, "sh", scanner)
		if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
			t.Errorf("%s: got error %v, want %q", name, err, test.wantError)
		}
		if !strings.Contains(shown.String(), test.wantShown) {
			t.Errorf("%s: showed %q, want %q", name, shown.String(), test.wantShown)
		}
	}
	if err := runScanner(t.Context(), &strings.Builder{}, filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a scanner that is not there found nothing")
	}
}
