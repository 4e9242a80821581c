package stranger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// fileAttacks are CSV files that are small to send and expensive to work on, and texts that are slow to search for.
func fileAttacks() []attack {
	return []attack{
		{"file of a million columns", forAddresses, 1, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 1, func(*rand.Rand, int) request { return t.csvRequest("/search/csv", wideFile("adresse", 1_000_000, 400)) })
		}},
		{"file of 300000 columns and 1100 rows", forAddresses, 1, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 1, func(*rand.Rand, int) request { return t.csvRequest("/search/csv", wideFile("adresse", 300_000, 1_100)) })
		}},
		{"twelve files of 60000 columns", forAddresses, 12, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 12, func(_ *rand.Rand, i int) request {
				if i%2 == 0 {
					return t.csvRequest("/search/csv", wideFile("adresse", 60_000, 1_000))
				}
				return t.csvRequest("/reverse/csv", wideFile("lat,lon", 60_000, 1_000))
			})
		}},
		{"cell of 975 KB taken 200 times", forAddresses, 1, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 1, func(random *rand.Rand, _ int) request {
				return t.csvRequest("/search/csv", cellFile(random), formFields("columns", "a", 200)...)
			})
		}},
		{"six files with a cell of 975 KB", forAddresses, 6, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 6, func(random *rand.Rand, _ int) request {
				return t.csvRequest("/search/csv", cellFile(random), formFields("columns", "a", 1)...)
			})
		}},
		{"questions of 200 slow characters", forMany, 8, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 8, func(random *rand.Rand, i int) request {
				path := []string{"/search?limit=100&q=", "/address/verify?q=", "/address/autocomplete?limit=20&q=", "/locality/search?limit=100&q="}[i%4]
				return request{method: "GET", path: path + url.QueryEscape(slowText(random)), key: t.account.key}
			})
		}},
	}
}

const formBoundary = "stranger"

// formFields returns a field of a form, repeated.
func formFields(name, value string, times int) (fields []string) {
	for range times {
		fields = append(fields, fmt.Sprintf("--%s\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", formBoundary, name, value))
	}
	return fields
}

// csvFile is a file of a header and equal rows.
type csvFile struct {
	header, row string
	rows        int
}

// wideFile returns a file with many columns, most of them without a name, and short rows.
func wideFile(names string, columns, rows int) csvFile {
	return csvFile{names + strings.Repeat(",", columns-1-strings.Count(names, ",")) + "\n", "48\n", rows}
}

// cellFile returns a file of one cell with 975 KB of words.
func cellFile(random *rand.Rand) csvFile {
	const size = 975_000
	text := slowText(random)
	return csvFile{"a\n", strings.Repeat(text+" ", size/(len(text)+1)) + "\n", 1}
}

// csvRequest returns a request with a form that has a file and more fields.
func (t *turn) csvRequest(path string, f csvFile, fields ...string) request {
	head := strings.Join(fields, "") + "--" + formBoundary + "\r\nContent-Disposition: form-data; name=\"data\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\n" + f.header
	return request{method: "POST", path: path, key: t.account.key, body: rowsContent("multipart/form-data; boundary="+formBoundary, head, f.rows,
		func(int) string { return f.row }, "\r\n--"+formBoundary+"--\r\n")}
}

// slowText returns a text of nearly 200 characters whose words occur in very many addresses, some with a typing error, so that there are
// many candidates and none of them fits.
func slowText(random *rand.Rand) string {
	words := []string{"rue", "de", "la", "le", "saint", "place", "chemin", "des", "du", "grand", "vieux", "eglise", "mairie", "route", "les", "bois", "pont", "sur", "en", "val"}
	var text strings.Builder
	for text.Len() < 185 {
		word := words[random.IntN(len(words))]
		if len(word) > 3 && random.IntN(3) == 0 {
			at := random.IntN(len(word) - 1)
			word = word[:at] + string(word[at+1]) + string(word[at]) + word[at+2:]
		}
		text.WriteString(word + " ")
	}
	return strings.TrimSpace(text.String())
}
