package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/schemas/body"
)

// routeCommand is lieudit route: POST /route/compute.
func (p Program) routeCommand() *cli.Command {
	return &cli.Command{
		Name:      "route",
		Usage:     "Find the way between addresses, with a customer's key",
		ArgsUsage: "FROM TO...",
		Description: `The way goes through all that is named, in this order, and ends at the last. Each is an address, an id of the BAN, a position
(lon,lat; behind -- where one begins with a minus) or one of the account's own sites (site:CODE/EXTERNAL_ID).

  lieudit route "12 av foch mende" "florac"
  lieudit route "12 av foch mende" "ispagnac" "florac" --mode bike --steps
  lieudit route 3.4989,44.5181 site:shops/florac-1 --geojson > way.geojson`,
		Flags: p.apiFlags(
			&cli.StringFlag{Name: "mode", Value: "car", Usage: "`MODE`: car, foot or bike", Validator: terminal.OneOf("car", "foot", "bike")},
			&cli.BoolFlag{Name: "shortest", Usage: "the shortest way, not the fastest"},
			&cli.StringSliceFlag{Name: "avoid", Usage: "`KIND` of roads to avoid as far as possible: toll, motorway, ferry; repeat it", Validator: terminal.Each(terminal.OneOf("toll", "motorway", "ferry"))},
			&cli.IntFlag{Name: "alternatives", Usage: "`HOW MANY` other ways at most, up to 2; not with stops between", Validator: validateAlternatives},
			&cli.BoolFlag{Name: "steps", Usage: "tell every turn"},
			&cli.StringFlag{Name: "lang", Value: "fr", Usage: "`LANGUAGE` of the steps: fr or en", Validator: terminal.OneOf("fr", "en")},
			&cli.BoolFlag{Name: "geojson", Usage: "print the ways and their bounds as a GeoJSON FeatureCollection"},
		),
		Action: p.apiAction(computeRoute),
	}
}

// validateAlternatives is the validator of --alternatives.
func validateAlternatives(n int) error {
	if n < 0 || n > 2 {
		return errors.New("it is 0, 1 or 2")
	}
	return nil
}

// routeRequest is the body of POST /route/compute. Bounds are texts, which that takes as they were typed.
type routeRequest struct {
	Origin       string   `json:"origin"`
	Waypoints    []string `json:"waypoints,omitempty"`
	Destination  string   `json:"destination"`
	Mode         string   `json:"mode"`
	Optimization string   `json:"optimization"`
	Avoid        []string `json:"avoid,omitempty"`
	Alternatives int      `json:"alternatives,omitempty"`
	Geometry     string   `json:"geometry"`
	Steps        bool     `json:"steps,omitempty"`
	Lang         string   `json:"lang"`
	Explain      bool     `json:"expliquer"`
}

// newRouteRequest is the request of a command line. People who read a table need no geometry.
func newRouteRequest(s session) routeRequest {
	bounds := s.Args().Slice()
	last := len(bounds) - 1
	r := routeRequest{
		Origin: bounds[0], Waypoints: bounds[1:last], Destination: bounds[last], Mode: strings.ToLower(s.String("mode")), Optimization: "fastest",
		Alternatives: s.Int("alternatives"), Geometry: "none", Steps: s.Bool("steps"), Lang: strings.ToLower(s.String("lang")),
		Explain: true,
	}
	for _, kind := range s.StringSlice("avoid") { // the flags take capitals too
		r.Avoid = append(r.Avoid, strings.ToLower(kind))
	}
	if s.Bool("shortest") {
		r.Optimization = "shortest"
	}
	if s.Bool("geojson") || s.Bool("json") {
		r.Geometry = "geojson"
	}
	return r
}

// NoRouteError says that no way was found. It is a failure for a script.
type NoRouteError struct {
	Reason   string   // as the API gives it
	Bounds   []string // that it is about, as typed
	IsTurned bool     // a position may have its latitude first
}

func (e *NoRouteError) Error() string {
	text := "no way leads there, or an end is too far from any road"
	switch {
	case len(e.Bounds) == 0:
	case e.Reason == body.OffRoadReason:
		text = "no road is within a kilometre of " + strings.Join(e.Bounds, ", ")
	case e.Reason == body.NoWayReason:
		text = "no way leads along " + strings.Join(e.Bounds, " → ")
	}
	if e.IsTurned {
		text += " (a position is written longitude first: 2.48,48.9)"
	}
	return text
}

// newNoRouteError is the error for an answer without a route. One that is not explained has no reason.
func (s session) newNoRouteError(raw []byte) error {
	var explained body.NoRoute
	if err := json.Unmarshal(raw, &explained); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	e := &NoRouteError{Reason: explained.Reason, IsTurned: slices.ContainsFunc(s.Args().Slice(), isTurned)}
	for _, b := range explained.Bounds {
		e.Bounds = append(e.Bounds, terminal.SanitizeText(b.Input))
	}
	return e
}

// isTurned reports whether a bound is a position of mainland France or Corsica once its two numbers are exchanged.
func isTurned(bound string) bool {
	first, second, _ := strings.Cut(bound, ",")
	lat, err1 := strconv.ParseFloat(strings.TrimSpace(first), 64)
	lon, err2 := strconv.ParseFloat(strings.TrimSpace(second), 64)
	return err1 == nil && err2 == nil && lat >= 41 && lat <= 52 && lon >= -6 && lon <= 10
}

// computeRoute asks for the way and prints it: as the API sent it, as GeoJSON, or for people.
func computeRoute(ctx context.Context, s session) error {
	if s.Int("alternatives") > 0 && s.NArg() > 2 {
		return terminal.NewUsageError(s.Command, "--alternatives: other ways are found between two ends, without stops between")
	}
	raw, err := s.client.Post(ctx, "/route/compute", newRouteRequest(s))
	if err != nil {
		return err
	}
	var found body.ComputedRoute
	if err := json.Unmarshal(raw, &found); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch {
	case s.Bool("json"):
		return s.printRawJSON(raw)
	case found.Status != body.OKEnvelope.Status:
		return s.newNoRouteError(raw)
	case s.Bool("geojson"):
		return s.PrintJSON(newRouteCollection(found))
	}
	return s.printRoute(found)
}

// printRoute prints a route for people: its bounds, the legs if there are several, the alternatives, and the steps.
func (s session) printRoute(found body.ComputedRoute) error {
	t := terminal.Table{{"bound", "place", "met at", "distance", "time"}}
	for i, b := range found.Bounds {
		row := []string{boundName(i, len(found.Bounds)), placeName(b), accessName(b.Access), "", ""}
		if i > 0 && i <= len(found.Legs) {
			leg := found.Legs[i-1]
			row[3], row[4] = formatRouteDistance(leg.Distance), formatRouteTime(leg.Duration)
		}
		t = append(t, row)
	}
	if err := s.PrintTable(t); err != nil {
		return err
	}
	fmt.Fprintln(s.Out)
	if err := s.PrintFields(routeFields(found, s.Int("alternatives"))...); err != nil || !s.Bool("steps") {
		return err
	}
	fmt.Fprintln(s.Out)
	return s.PrintTable(stepTable(found.Legs))
}

// routeFields are what there is to say of the whole way, and of the others in a line each. That none of those that
// were wanted was found is said too.
func routeFields(found body.ComputedRoute, wanted int) []string {
	fields := []string{"way", describeWay(found.RoutePath)}
	for i, other := range found.Alternatives {
		fields = append(fields, fmt.Sprintf("other way %d", i+1), describeWay(other))
	}
	if wanted > 0 && len(found.Alternatives) == 0 {
		fields = append(fields, "others", "no other way worth taking")
	}
	return append(fields, "roads", found.RoadNetwork, "data", found.Attribution)
}

// describeWay is a way in a line: 38.2 km, 41 min, 12 km with a toll, 300 m by ferry in spite of --avoid.
func describeWay(p body.RoutePath) string {
	text := formatRouteDistance(p.Distance) + ", " + formatRouteTime(p.Duration)
	if p.TollDistance > 0 {
		text += ", " + formatRouteDistance(p.TollDistance) + " with a toll"
	}
	for _, a := range p.Avoided {
		text += fmt.Sprintf("; %s of %s could not be avoided", formatRouteDistance(a.Distance), a.Type)
	}
	return text
}

// stepTable is the steps of all legs, each with how far from the start it is.
func stepTable(legs []body.Leg) terminal.Table {
	t, at := terminal.Table{{"at", "step", "road", "for"}}, 0
	for _, leg := range legs {
		for _, step := range leg.Steps {
			road := cmp.Or(step.Street, step.Ref)
			if step.Street != "" && step.Ref != "" {
				road += " (" + step.Ref + ")"
			}
			t = append(t, []string{formatRouteDistance(at), cmp.Or(step.Text, step.Maneuver.Type), road, terminal.EmptyIf(step.Distance == 0, formatRouteDistance(step.Distance))})
			at += step.Distance
		}
	}
	return t
}

func boundName(i, count int) string {
	switch i {
	case 0:
		return "from"
	case count - 1:
		return "to"
	}
	return "via"
}

// placeName is what a bound was resolved to.
func placeName(b body.ResolvedBound) string {
	switch {
	case b.Address != nil:
		return b.Address.Label
	case b.Site != nil:
		return cmp.Or(b.Site.Name, b.Input)
	}
	return b.Input
}

// accessName names the road that a bound meets, and how far away it is.
func accessName(a *body.Access) string {
	if a == nil {
		return ""
	}
	return cmp.Or(a.Street, "a road without a name") + ", " + formatRouteDistance(a.Distance)
}

// formatRouteDistance formats metres: 850 m, 1.2 km, 38 km.
func formatRouteDistance(metres int) string {
	switch km := float64(metres) / 1000; {
	case metres < 1000:
		return fmt.Sprintf("%d m", metres)
	case km < 9.95:
		return fmt.Sprintf("%.1f km", km)
	default:
		return terminal.GroupThousands(int(math.Round(km))) + " km"
	}
}

// formatRouteTime formats seconds, from a minute on to the minute: 30 s, 41 min, 1 h 05.
func formatRouteTime(seconds int) string {
	if seconds < 60 {
		return fmt.Sprintf("%d s", seconds)
	}
	minutes := (seconds + 30) / 60
	if minutes < 60 {
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %02d", minutes/60, minutes%60)
}
