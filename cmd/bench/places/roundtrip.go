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
	file  string   // its extension means nothing to the import, which looks at the bytes
	flags []string // of the export
}

// forms returns all ways, as the flags of lieudit sites export name them.
func forms() []form {
	return []form{
		{"CSV", "export.csv", nil},
		{"Excel CSV", "export-excel.csv", []string{"--excel"}},
		{"GeoJSON", "export.geojson", []string{"--format", "geojson"}},
		{"NDJSON", "export.ndjson", []string{"--format", "ndjson"}},
	}
}

// tripThroughForms exports the sites of an account in every form, and imports each export twice: into another account, and into the original
// referential. The other account comes first, because the second import may change the sites that it is compared with.
func (r *run) tripThroughForms(ctx context.Context, a account, flags []string) (trips []RoundTrip, err error) {
	// The user's confirmation of the file holds for its exports too. The other flags are about the file's columns.
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

// importElsewhere imports an export of an account into another one, and describes how the sites of the two differ.
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

// importAgain imports an export into its original referential, and describes the changes.
func (a account) importAgain(ctx context.Context, path string, flags []string) string {
	c := a.importFile(ctx, path, flags...)
	if c.code != 0 {
		return "refused: " + firstSentence(path, c.stderr)
	}
	return parseChanges(c.stdout)
}

// changedLine matches a line about sites that an import changed.
var changedLine = regexp.MustCompile(`(?m)^(created|updated|reactivated|deactivated) +([\d,]+)$`)

// parseChanges parses the changes of an import, "" if there are none.
func parseChanges(stdout string) string {
	var changes []string
	for _, line := range changedLine.FindAllStringSubmatch(stdout, -1) {
		changes = append(changes, line[1]+" "+line[2])
	}
	return strings.Join(changes, ", ")
}
