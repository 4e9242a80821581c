package clean_test

import (
	"slices"
	"strings"
	"testing"

	"lieudit/http/sitefile/clean"
)

func TestTelephonesAreFoundInTexts(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		want string // joined by spaces
		rest string
	}{
		"0466651234":                           {"+33466651234", ""},
		"04 66 65 12 34":                       {"+33466651234", ""},
		"04.66.65.12.34":                       {"+33466651234", ""},
		"04-66-65-12-34":                       {"+33466651234", ""},
		"04/66/65/12/34":                       {"+33466651234", ""},
		"04,66,65,12,34":                       {"+33466651234", ""},
		"04\u00a066\u202f65 12 34":             {"+33466651234", ""},
		"Tél : 04.66.65.12.34":                 {"+33466651234", ""},
		"+33 (0)4 66 65 12 34":                 {"+33466651234", ""},
		"+33 4 66 65 12 34":                    {"+33466651234", ""},
		"+33(4)66651234":                       {"+33466651234", ""},
		"(+33) 4 66 65 12 34":                  {"+33466651234", ""},
		"+ 33 4 66 65 12 34":                   {"+33466651234", ""},
		"0033 4 66 65 12 34":                   {"+33466651234", ""},
		"+33 0466651234":                       {"+33466651234", ""},
		"33466651234":                          {"+33466651234", ""},
		"tel:+33-4-66-65-12-34":                {"+33466651234", ""},
		"466651234":                            {"+33466651234", ""},
		"466651234.0":                          {"+33466651234", ""},
		"322406163":                            {"+33322406163", ""},
		"06 12 34 56 78 / 07 61 23 45 67":      {"+33612345678 +33761234567", ""},
		"06 12 34 56 78 – 04 66 65 12 34":      {"+33612345678 +33466651234", ""},
		"06 12 34 56 78-04 66 65 12 34":        {"+33612345678 +33466651234", ""},
		"06 12 34 56 78 04 66 65 12 34":        {"+33612345678 +33466651234", ""},
		"0612345678;0466651234":                {"+33612345678 +33466651234", ""},
		"0612345678, 0466651234":               {"+33612345678 +33466651234", ""},
		"0612345678\n0466651234":               {"+33612345678 +33466651234", ""},
		"+33612345678+33466651234":             {"+33612345678 +33466651234", ""},
		"04 66 65 12 34 ou 06 12 34 56 78":     {"+33466651234 +33612345678", ""},
		"04 66 65 12 34 et 04 66 65 12 34":     {"+33466651234", ""},
		"04 66 65 12 34 (mairie)":              {"+33466651234", "(mairie)"},
		"04 66 65 12 34 poste 12":              {"+33466651234", "poste 12"},
		"Tél. 04 66 65 12 34 Fax 04 66 651235": {"+33466651234", "Fax 04 66 651235"},
		"3949":                                 {"3949", ""},
		"15":                                   {"15", ""},
		"112":                                  {"112", ""},
		"118 218":                              {"118218", ""},
		"1001 PLUMES":                          {"", "1001 PLUMES"},
		"04 66 65 12 34 à partir du 18 mai":    {"+33466651234", "à partir du 18 mai"},
		"0 800 123 456 (n° vert)":              {"+33800123456", ""},
		"08 92 35 35 35":                       {"+33892353535", ""},
		"0590 82 12 34":                        {"+590590821234", ""},
		"0690 35 12 34":                        {"+590690351234", ""},
		"0262 41 12 34":                        {"+262262411234", ""},
		"0269 61 12 34":                        {"+262269611234", ""},
		"+33 596 56 12 34":                     {"+596596561234", ""},
		"+596 596 56 12 34":                    {"+596596561234", ""},
		"+596 56 12 34":                        {"+596596561234", ""},
		"+262 (0)692 12 34 56":                 {"+262692123456", ""},
		"262262411234":                         {"+262262411234", ""},
		"+508 41 12 34":                        {"+508411234", ""},
		"0508 41 12 34":                        {"+508411234", ""},
		"+687 28 12 34":                        {"+687281234", ""},
		"+689 40 41 12 34":                     {"+68940411234", ""},
		"+32 2 123 45 67":                      {"+3221234567", ""},
		"+32 (0)2 123 45 67":                   {"+3221234567", ""},
		"+352 26 12 34":                        {"+352261234", ""},
		"+41 22 123 45 67":                     {"+41221234567", ""},
		"+39 06 1234 5678":                     {"+390612345678", ""},
		"+1 212-555-0123":                      {"+12125550123", ""},
		"04 66 65 12":                          {"", "04 66 65 12"},
		"04 66 65 12 345":                      {"", "04 66 65 12 345"},
		"3494521578":                           {"", "3494521578"},
		"0000000000":                           {"", "0000000000"},
		"111111111":                            {"", "111111111"},
		"00 00 00 00 00":                       {"", "00 00 00 00 00"},
		"+33 1 842 92 13 61":                   {"", "+33 1 842 92 13 61"},
		"+999":                                 {"", "+999"},
		"44.518, 3.5":                          {"", "44.518, 3.5"},
		"non":                                  {"", "non"},
		"":                                     {"", ""},
	} {
		numbers, rest := clean.Phones(text, "FR")
		if got := strings.Join(numbers, " "); got != c.want || rest != c.rest {
			t.Errorf("%q: got %q and %q, want %q and %q", text, got, rest, c.want, c.rest)
		}
	}
}

func TestTelephonesAreDialledInTheirRegion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, region, want string }{
		{"02 123 45 67", "BE", "+3221234567"},
		{"0475 12 34 56", "be", "+32475123456"},
		{"022 123 45 67", "CH", "+41221234567"},
		{"28 12 34", "NC", "+687281234"},
		{"0590 82 12 34", "GP", "+590590821234"},
		{"93 15 12 34", "MC", "+37793151234"},
		{"3949", "BE", ""},
		{"02 123 45 67", "XX", ""},
		{"+33 4 66 65 12 34", "XX", "+33466651234"},
	} {
		if got, _ := clean.Phones(c.text, c.region); strings.Join(got, " ") != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.text, c.region, got, c.want)
		}
	}
}

// readers are the functions from a text to a text. "" stands for a text that is not ok.
var readers = map[string]func(string) (string, bool){
	"postcode": clean.Postcode, "insee": clean.InseeCode, "siret": clean.Siret, "website": clean.Website, "email": clean.Email,
}

func TestCodesAndAddressesAreReadOrNotOK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reader, text, want string }{
		{"postcode", "75001", "75001"}, {"postcode", "1000", "01000"}, {"postcode", "75 001", "75001"}, {"postcode", "F-75001", "75001"},
		{"postcode", "fr 75001", "75001"}, {"postcode", "75001.0", "75001"}, {"postcode", "75001 CEDEX 08", "75001"}, {"postcode", "48005 cedex", "48005"},
		{"postcode", "98713", "98713"}, {"postcode", "2A004", ""}, {"postcode", "00000", ""}, {"postcode", "99123", ""}, {"postcode", "75001 Paris", ""},
		{"postcode", "750012", ""}, {"postcode", "750", ""}, {"postcode", "H2L3T5", ""}, {"postcode", "", ""},
		{"insee", "48095", "48095"}, {"insee", "1004", "01004"}, {"insee", "2a004", "2A004"}, {"insee", "1004.0", "01004"}, {"insee", "97105", "97105"},
		{"insee", "20004", ""}, {"insee", "2C004", ""}, {"insee", "00123", ""}, {"insee", "99100", ""}, {"insee", "480", ""},
		{"siret", "732 829 320 00074", "73282932000074"}, {"siret", "73282932000074.0", "73282932000074"}, {"siret", "73282932000075", ""},
		{"siret", "35600000000048", "35600000000048"}, {"siret", "35600000009075", "35600000009075"}, {"siret", "35600000009076", ""},
		{"siret", "00000000000000", ""}, {"siret", "732829320", ""},
		{"website", "https://exemple.fr/a?b=c#d", "https://exemple.fr/a?b=c#d"}, {"website", "www.exemple.fr", "https://www.exemple.fr"},
		{"website", "exemple.fr", "https://exemple.fr"}, {"website", "exemple.fr/magasins", "https://exemple.fr/magasins"},
		{"website", "HTTP://Exemple.fr", "http://Exemple.fr"}, {"website", "http//exemple.fr", "http://exemple.fr"}, {"website", "https:/exemple.fr", "https://exemple.fr"},
		{"website", "http:\\\\exemple.fr", "http://exemple.fr"}, {"website", "htpp://exemple.fr", ""}, {"website", "http://https://exemple.fr", "https://exemple.fr"},
		{"website", "Site de la ville : www.exemple.fr", "https://www.exemple.fr"}, {"website", "https://a.fr|https://b.fr", "https://a.fr"},
		{"website", "https://a.fr;http://b.fr", "https://a.fr"}, {"website", "https://a.fr, https://b.fr", "https://a.fr"},
		{"website", "https://a.fr/rubrique12,3.html", "https://a.fr/rubrique12,3.html"}, {"website", `<a href="https://a.fr/x">Site</a>`, "https://a.fr/x"},
		{"website", "http://www.nom prenom.org", ""}, {"website", "Site de la ville", ""}, {"website", "contact@exemple.fr", ""}, {"website", "-", ""},
		{"website", "http://localhost", ""}, {"website", "javascript:alert(1)", ""}, {"website", "ftp://exemple.fr", ""}, {"website", "St.Jean", ""},
		{"website", "https://www.littérature.fr", "https://www.littérature.fr"}, {"website", "https://a.fr/%zz", ""}, {"website", "1.5", ""},
		{"email", "a.b@exemple.fr", "a.b@exemple.fr"}, {"email", "mailto:a@exemple.fr?subject=x", "a@exemple.fr"}, {"email", "Mail : a@exemple.fr.", "a@exemple.fr"},
		{"email", "Paul <a@exemple.fr>", "a@exemple.fr"}, {"email", "a@exemple.fr ; b@exemple.fr", "a@exemple.fr"}, {"email", "a @ exemple.fr", "a@exemple.fr"},
		{"email", "a@exemple.fr/b@exemple.fr", "a@exemple.fr"}, {"email", "a@exemple", ""}, {"email", "a@@exemple.fr", ""}, {"email", "a@b@exemple.fr", ""},
		{"email", "é@exemple.fr", ""}, {"email", "a..b@exemple.fr", ""}, {"email", "a[a]exemple.fr", ""}, {"email", "www.exemple.fr", ""},
	} {
		got, ok := readers[c.reader](c.text)
		if !ok {
			got = ""
		}
		if got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.reader, c.text, got, c.want)
		}
	}
}

func TestDecimalsHaveAPointOrAComma(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"44.518": 44.518, "44,518": 44.518, "1 234,5": 1234.5, "1\u202f234": 1234, "−3,5": -3.5, "+3": 3, "1.234,5": 1234.5, "1,234.5": 1234.5,
		"1e-7": 1e-7, ".5": 0.5, "5.": 5, "-0": 0,
	} {
		if got, ok := clean.Decimal(text); !ok || got != want {
			t.Errorf("%q: got %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "NaN", "Inf", "1e400", "0x1p4", "1_000", "44.518.123", "44,518,123", "1,2,3", "-", "nord", "44° N"} {
		if got, ok := clean.Decimal(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestWholeNumbersLoseTheirTrailingZero(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"105.0": "105", "105,00": "105", "007.0": "007", "-3.0": "-3", "105": "105", "1.05": "1.05", "a.0": "a.0", "": ""} {
		if got, changed := clean.Number(text); got != want || changed != (got != text) {
			t.Errorf("%q: got %q %v, want %q", text, got, changed, want)
		}
	}
}

func TestFixesAreNamedOnce(t *testing.T) {
	t.Parallel()
	if _, done := clean.Text(" a  b ", false); !slices.Equal(done, []clean.Fix{clean.Spaces}) {
		t.Errorf("got %q", done)
	}
}
