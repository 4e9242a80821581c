package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/http/sitefile"
	"lieudit/http/sitefile/mapping"
	"lieudit/schemas/body"
)

// showsPreview reports whether the command shows what each column becomes before it writes: when asked to, and on a terminal
// whenever the mapping is new to the user. With --json it is part of the JSON.
func (s session) showsPreview(f *importFile) bool {
	return !s.Bool("json") && (s.Bool("preview") || s.IsTerminal && !f.hasMapping)
}

// printPreview prints what was read: the file, its columns, three sites as they will be stored, and what was fixed and doubted.
func (s session) printPreview(read *sitefile.Import) error {
	if err := s.PrintLine("%s", terminal.SanitizeText(read.Describe())); err != nil {
		return err
	}
	uses, properties := read.DescribeColumns()
	rows := terminal.Table{{"COLUMN", "BECOMES", "EXAMPLE"}}
	for _, c := range uses {
		rows = append(rows, []string{c.Name, c.Becomes, c.Example})
	}
	if err := s.PrintTable(rows); err != nil {
		return err
	}
	if len(properties) > 0 {
		if err := s.PrintLine("kept in proprietes under their own names: %s", terminal.SanitizeText(strings.Join(properties, ", "))); err != nil {
			return err
		}
	}
	for _, site := range read.Sites[:min(3, len(read.Sites))] {
		text, err := json.MarshalIndent(siteRow{site.ExternalID, site.Content}, "", "  ")
		if err != nil {
			return err
		}
		if err := s.PrintLine("line %d\n%s", site.Line, sanitizeLines(string(text))); err != nil {
			return err
		}
	}
	return s.printIssues(read)
}

// sanitizeLines sanitizes each line of a text of several.
func sanitizeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = terminal.SanitizeText(line)
	}
	return strings.Join(lines, "\n")
}

// printIssues prints what was found in the file, and each kind of fix and warning with its count, its lines and an example.
func (s session) printIssues(read *sitefile.Import) error {
	for _, note := range read.Notes() {
		if err := s.PrintLine("note   %s", terminal.SanitizeText(note)); err != nil {
			return err
		}
	}
	for _, f := range read.Fixed {
		if err := s.PrintLine("mended %s × %s", terminal.GroupThousands(f.Count), describeIssue(f)); err != nil {
			return err
		}
	}
	for _, f := range read.Warnings {
		if err := s.PrintLine("doubt  %s × %s", terminal.GroupThousands(f.Count), describeIssue(f)); err != nil {
			return err
		}
	}
	return nil
}

func describeIssue(f sitefile.Issue) string {
	text := f.Kind + ", " + f.DescribeLines()
	switch {
	case f.After != "":
		text += fmt.Sprintf(": %q is %q", f.Before, f.After)
	case f.Before != "":
		text += fmt.Sprintf(": %q", f.Before)
	}
	return terminal.SanitizeText(text)
}

// printSync prints what a sync did, or would do in a dry run.
func (s session) printSync(raw json.RawMessage, read *sitefile.Import) error {
	return printResource(s, raw, func(r body.Synced) error { return s.printSyncCounts(r, read) })
}

// printSyncCounts prints the counts of a sync for people, without those that are zero. The capacity line shows the active
// sites of the account after the sync, the number that its plan includes, and the number above which it is refused.
func (s session) printSyncCounts(r body.Synced, read *sitefile.Import) error {
	count := func(n int) string { return terminal.EmptyIf(n == 0, terminal.GroupThousands(n)) }
	if s.Bool("dry-run") || s.Bool("preview") {
		if err := s.PrintLine("nothing was written; it would be:"); err != nil {
			return err
		}
	}
	err := s.PrintFields(
		"created", count(r.Created), "updated", count(r.Updated), "unchanged", count(r.Unchanged),
		"reactivated", count(r.Reactivated), "deactivated", count(r.Deactivated),
		"placed by address", count(r.Geocoded), "without position", describeUnplaced(r.Unlocated, r.Unplaced),
		"active", fmt.Sprintf("%s, before %s", terminal.GroupThousands(r.ActiveAfter), terminal.GroupThousands(r.ActiveBefore)),
		"capacity", fmt.Sprintf("%s of %s, at most %s", terminal.GroupThousands(r.AccountActive+r.ActiveAfter-r.ActiveBefore), terminal.GroupThousands(r.Capacity), terminal.GroupThousands(r.Ceiling)),
	)
	if err != nil {
		return err
	}
	if s.Bool("dry-run") || s.Bool("preview") {
		if err := s.printChanges(r, read.Sites); err != nil {
			return err
		}
	}
	isNews := r.Created+r.Updated+r.Reactivated > 0
	if isNews && !s.Bool("preview") && !s.IsTerminal { // otherwise the preview has printed them
		if err := s.printIssues(read); err != nil {
			return err
		}
	}
	return s.printAlerts(r, read.Sites)
}

// effects are what can become of a site, in the order in which they are printed: those that take something away come first.
var effects = []struct{ code, word string }{
	{"desactive", "deactivated"}, {"modifie", "updated"}, {"reactive", "reactivated"}, {"cree", "created"},
}

// printChanges prints the sites that a sync would write, with the lines that they stand on and the fields that change: the first of each
// effect. JSON has all.
func (s session) printChanges(r body.Synced, sites []sitefile.Site) error {
	const maxShown = 20
	lines := make(map[string]int, len(sites))
	for _, site := range sites {
		lines[site.ExternalID] = site.Line
	}
	for _, e := range effects {
		shown := 0
		for _, c := range r.Changes {
			if c.Effect != e.code {
				continue
			}
			if shown++; shown > maxShown {
				continue
			}
			text := c.ExternalID
			if line, ok := lines[c.ExternalID]; ok {
				text += fmt.Sprintf(" (line %d)", line)
			}
			if len(c.Fields) > 0 {
				text += ": " + strings.Join(c.Fields, ", ")
			}
			if err := s.PrintLine("change %-11s %s", e.word, terminal.SanitizeText(text)); err != nil {
				return err
			}
		}
		if shown > maxShown {
			if err := s.PrintLine("change %-11s … and %s more; --json names all", e.word, terminal.GroupThousands(shown-maxShown)); err != nil {
				return err
			}
		}
	}
	return nil
}

// printAlerts prints the alerts of the service: each kind with its count, and the first of its sites with its line.
func (s session) printAlerts(r body.Synced, sites []sitefile.Site) error {
	counts := countAlerts(r)
	for _, code := range sortedKeys(counts) {
		text := fmt.Sprintf("%s × %s (%s)", terminal.GroupThousands(counts[code]), alertPhrases[code], code)
		if i := slices.IndexFunc(r.Alerts, func(a body.Alert) bool { return a.Code == code }); i >= 0 {
			a := r.Alerts[i]
			text += fmt.Sprintf(", such as %s%s: %s", a.ExternalID, lineOf(sites, a.ExternalID), a.Message)
		}
		if err := s.PrintLine("alert  %s", terminal.SanitizeText(text)); err != nil {
			return err
		}
	}
	return nil
}

// countAlerts counts the alerts of each code.
func countAlerts(r body.Synced) map[string]int {
	counts := map[string]int{}
	text, err := json.Marshal(r.AlertCounts)
	if err == nil { // always: numbers can be encoded
		_ = json.Unmarshal(text, &counts)
	}
	return counts
}

func lineOf(sites []sitefile.Site, id string) string {
	i := slices.IndexFunc(sites, func(site sitefile.Site) bool { return site.ExternalID == id })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", sites[i].Line)
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// describeUnplaced counts the sites without a position and names the first ten by their ids. It returns "" if there are none.
func describeUnplaced(ids []string, reasons []body.Unplaced) string {
	const maxShown = 10
	shown := slices.Clone(ids[:min(len(ids), maxShown)])
	for i, id := range shown {
		if at := slices.IndexFunc(reasons, func(u body.Unplaced) bool { return u.ExternalID == id }); at >= 0 {
			shown[i] += ": " + reasons[at].Reason
		}
	}
	if len(ids) > maxShown {
		shown = append(shown, "…")
	}
	return terminal.EmptyIf(len(ids) == 0, fmt.Sprintf("%s (%s)", terminal.GroupThousands(len(ids)), strings.Join(shown, ", ")))
}

// describeStops returns the error for an import that looks wrong, nil with --confirm or if nothing looks wrong.
func (s session) describeStops(verb string, stops []string) error {
	if len(stops) == 0 || s.Bool("confirm") {
		return nil
	}
	return fmt.Errorf("%s: %s\nnothing was written; --confirm goes on", verb, strings.Join(stops, "\n"))
}

// confirmSync stops an import that looks wrong, unless --confirm is given: on a terminal it asks, otherwise it returns an error. On a
// terminal it also asks before it writes a file with a new mapping.
func (s session) confirmSync(f *importFile, read *sitefile.Import, would body.Synced, stops []string) error {
	if s.Bool("confirm") {
		return nil
	}
	if !s.IsTerminal || s.Bool("json") {
		return s.describeStops("refused", stops)
	}
	if len(stops) == 0 && f.hasMapping {
		return nil
	}
	for _, stop := range stops {
		if err := s.PrintLine("%s", terminal.SanitizeText(stop)); err != nil {
			return err
		}
	}
	if err := errors.Join(s.printChanges(would, read.Sites), s.printAlerts(would, read.Sites)); err != nil {
		return err
	}
	return s.ask(fmt.Sprintf("%d created, %d updated, %d unchanged, %d reactivated, %d deactivated. Write it?",
		would.Created, would.Updated, would.Unchanged, would.Reactivated, would.Deactivated))
}

// Shares and counts from which an import looks wrong.
const (
	maxWrongPositions = 0.02 // of the sites
	minSwappedIDs     = 5
)

// findStops finds what stops an import without a terminal: positions at 0, 0 or with latitude and longitude exchanged in more than 2 % of
// the sites, and ids or values that a spreadsheet has changed.
func (s session) findStops(ctx context.Context, read *sitefile.Import, would body.Synced, known map[string]sitefile.Site) ([]string, error) {
	var stops []string
	counts := countAlerts(would)
	for _, code := range []string{"position_nulle", "position_inversee"} {
		if n := counts[code]; float64(n) > maxWrongPositions*float64(len(read.Sites)) {
			stops = append(stops, fmt.Sprintf("%d of %d places %s (%s)%s", n, len(read.Sites), alertPhrases[code], code, s.adviseExchange(code, read)))
		}
	}
	threshold := minSwappedIDs
	if read.Mapping.IsExport {
		threshold = 1
	}
	if comes := would.Created + would.Reactivated; known == nil && comes >= threshold && would.Deactivated >= threshold {
		var err error
		if known, err = s.exportedSites(ctx); err != nil {
			return nil, err
		}
	}
	if n, example := read.CountChangedIDs(known); n >= threshold {
		stops = append(stops, fmt.Sprintf("ids go while as many come (%d) that differ only by leading zeros, a trailing .0, case or form (%s), "+
			"as after a round trip through a spreadsheet", n, example))
	}
	return append(stops, read.FindLosses(known)...), nil
}

// adviseExchange names the flags that exchange latitude and longitude, if only that puts the positions in France.
func (s session) adviseExchange(code string, read *sitefile.Import) string {
	lat, hasLat := read.Mapping.Find(mapping.Lat)
	lon, hasLon := read.Mapping.Find(mapping.Lon)
	if code != "position_inversee" || !hasLat || !hasLon {
		return ""
	}
	return fmt.Sprintf("; --map 'lat=%s' --map 'lon=%s' exchanges the columns", read.Mapping.Columns[lon], read.Mapping.Columns[lat])
}

// alertPhrases say in English what the codes of alerts mean.
var alertPhrases = map[string]string{
	"position_inversee": "lie in France only with latitude and longitude exchanged",
	"position_nulle":    "stand at 0, 0",
	"position_loin":     "stand far from the commune of their address",
	"place_commune":     "are placed at the centre of their commune",
	"adresse_vide":      "have no address",
	"sans_nom":          "have no name",
}

// exportedSites are the active sites of the referential, by external id.
func (s session) exportedSites(ctx context.Context) (map[string]sitefile.Site, error) {
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:export"
	var export strings.Builder
	if err := s.client.Download(ctx, path, url.Values{"format": {"ndjson"}}, &export); err != nil {
		return nil, err
	}
	return sitefile.ParseExport(export.String())
}
