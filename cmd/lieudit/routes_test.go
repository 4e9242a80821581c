package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lieudit/schemas/body"
)

// TestEveryRouteHasAScene holds the file names to the routes: get_accounts_id.shows.txtar is a scene of
// GET /accounts/{id}, and any. and area. begin the rules that all routes of a listener share.
func TestEveryRouteHasAScene(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(scenePattern)
	if err != nil {
		t.Fatal(err)
	}
	routes := []string{"any", "area"}
	for _, operation := range slices.Concat(body.API().Operations, body.CustomerArea().Operations) {
		routes = append(routes, routeFileName(operation.Method, operation.Path))
	}
	played := map[string]bool{}
	for _, file := range files {
		route, _, _ := strings.Cut(filepath.Base(file), ".")
		played[route] = true
		if !slices.Contains(routes, route) {
			t.Errorf("%s is about no route", file)
		}
	}
	for _, route := range routes {
		if !played[route] {
			t.Errorf("there is no scene %s.*.txtar", route)
		}
	}
}

// routeFileName is the route a file name begins with.
func routeFileName(method, path string) string {
	words := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(path, "_")
	return strings.ToLower(method) + strings.TrimSuffix(words, "_")
}
