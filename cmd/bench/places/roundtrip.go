package places

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// form is a way to export sites.
type form struct {
	name  string   // in the report
	file  string   // whose ending says nothing to the import: it looks at the bytes
	flags []string // of the export
}

// forms are all ways, as the flags of lieudit sites export name them.
func forms() []form {
	return []form{
		{"CSV", "export.csv", nil},
		{"Excel CSV", "export-excel.csv", []string{"--excel"}},
		{"GeoJSON", "export.geojson", []string{"--format", "geojson"}},
		{"NDJSON", "export.ndjson", []string{"--format", "ndjson"}},
	}
}

// tripThroughForms exports the sites of an account in every form, and imports each export twice: into another account, and into
// the referential that it came from. The other account is first, because the second import may change what it is compared with.
func (r *run) tripThroughForms(ctx context.Context, a account, flags []string) (trips []RoundTrip, err error) {
	// What the file's user confirmed is confirmed of the exports too. Its other flags are about the file's columns.
	flags = slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f != "--confirm" })
	for _, form := range forms() {
		path := r.WorkDir.Path(form.file) // each file replaces that of the form before it
		if err := a.exportTo(ctx, path, form.flags...); err != nil {
			return nil, err
		}
		other, err := r.openAccount(ctx)
		if err != nil {
			return nil, err
		}
		t := RoundTrip{Form: form.name}
		if t.Elsewhere, err = r.importElsewhere(ctx, a, other, path, flags); err != nil {
			return nil, err
		}
		t.Again = a.importAgain(ctx, path, flags)
		trips = append(trips, t)
	}
	return trips, nil
}

// importElsewhere imports an export of an account into another one, and says how the sites of the two differ.
func (r *run) importElsewhere(ctx context.Context, from, to account, path string, flags []string) (string, error) {
	want, err := r.exportSites(ctx, from)
	if err != nil {
		return "", err
	}
	if c := to.importFile(ctx, path, flags...); c.code != 0 {
		return "refused: " + firstSentence(path, c.stderr), nil
	}
	got, err := r.exportSites(ctx, to)
	if err != nil {
		return "", err
	}
	return compareSites(want, got), nil
}

// importAgain imports an export into the referential that it came from, and says what that changed.
func (a account) importAgain(ctx context.Context, path string, flags []string) string {
	c := a.importFile(ctx, path, flags...)
	if c.code != 0 {
		return "refused: " + firstSentence(path, c.stderr)
	}
	return parseChanges(c.stdout)
}

// changedLine is a line about sites that an import changed.
var changedLine = regexp.MustCompile(`(?m)^(created|updated|reactivated|deactivated) +([\d,]+)$`)

// parseChanges reads what an import changed, "" where nothing.
func parseChanges(stdout string) string {
	var changes []string
	for _, line := range changedLine.FindAllStringSubmatch(stdout, -1) {
		changes = append(changes, line[1]+" "+line[2])
	}
	return strings.Join(changes, ", ")
}
