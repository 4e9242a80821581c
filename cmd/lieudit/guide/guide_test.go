package guide

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestEveryChapterIsListedOnceAndHasATitle(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(embedded, "chapters/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range files {
		want = append(want, strings.TrimSuffix(strings.TrimPrefix(name, "chapters/"), ".md"))
	}
	got := chapterNames()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-files +listed):\n%s", diff)
	}
	all, err := Chapters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if !strings.HasPrefix(c.Text, "# ") || c.Title == "" {
			t.Errorf("%s does not begin with a title", c.Name)
		}
	}
}

// A chapter sends its reader to another one, or to a file, with the command that prints it.
func TestEveryReferenceInTheGuideIsAnswered(t *testing.T) {
	t.Parallel()
	all, err := Chapters()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, c := range all {
		for _, after := range strings.Split(strings.Join(strings.Fields(c.Text), " "), "lieudit guide ")[1:] {
			name := strings.TrimRight(strings.Fields(after)[0], "`.,:)")
			_, chapterErr := FindChapter(name)
			_, fileErr := ReadFile(name)
			if chapterErr != nil && fileErr != nil {
				t.Errorf("%s refers to %q: %v", c.Name, name, chapterErr)
			}
			found++
		}
	}
	if found == 0 {
		t.Error("no reference was found")
	}
}

func TestWhatIsNotInTheGuideIsSaidSo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "weather", "../guide.go", "chapters/start.md", "monitoring"} {
		var unknown *UnknownError
		if _, err := ReadFile(name); !errors.As(err, &unknown) {
			t.Errorf("file %q: got %v, want an UnknownError", name, err)
		}
		if _, err := FindChapter(name); !errors.As(err, &unknown) {
			t.Errorf("chapter %q: got %v, want an UnknownError", name, err)
		}
	}
	if c, err := FindChapter("Readiness"); err != nil || c.Name != "readiness" {
		t.Errorf("a name in another case: got %q, %v", c.Name, err)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, text, want string }{
		{"the_title_is_underlined", "# Été", "Été\n===\n"},
		{"headings_are_underlined", "## Logs", "Logs\n----\n"},
		{"paragraphs_are_folded", "one two three four five\nsix", "one two three four\nfive six\n"},
		{"items_are_folded_and_indented", "- one two three four five\n  six\n- seven", "- one two three four\n  five six\n- seven\n"},
		{"code_is_left_alone", "```\na  b c d e f g h i j k l m\n```", "  a  b c d e f g h i j k l m\n"},
		{"a_word_is_never_broken", "a pneumonoultramicroscopic b", "a\npneumonoultramicroscopic\nb\n"},
		{"the_widest_column_is_folded", "| k | what it is |\n|---|---|\n| an | one two three four |",
			"k   what it is\nan  one two three\n    four\n"},
		{"a_table_of_long_words_overflows", "| pneumonoultramicroscopic | b |", "pneumonoultramicroscopic  b\n"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, Chapter{Text: c.text}.Format(20)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATableWithRoomHasAlignedColumns(t *testing.T) {
	t.Parallel()
	got := Chapter{Text: "| key | means |\n|---|---|\n| été | one two three four five six seven |\n| a | b |"}.Format(32)
	want := "key  means\nété  one two three four five six\n     seven\na    b\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABarInACellIsNoBorder(t *testing.T) {
	t.Parallel()
	got := Chapter{Text: "| flag | says |\n|---|---|\n| center\\|skip | what |"}.Format(32)
	if want := "flag         says\ncenter|skip  what\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoChapterHasLinesThatOnlyCodeMayHave(t *testing.T) {
	t.Parallel()
	all, err := Chapters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for _, line := range strings.Split(c.Format(80), "\n") {
			if utf8.RuneCountInString(line) > 80 && !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: %q has over 80 columns", c.Name, line)
			}
		}
	}
}
