package limit_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	_ "time/tzdata" // if the machine may have no time zone data

	"github.com/neap-go/neap/core/limit"
)

func ExampleParsePolicy() {
	p, err := limit.ParsePolicy("calendar 10000/day in Asia/Shanghai name daily kept")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.PolicyName())
	_, err = limit.ParsePolicy("bucket 10/s burst 20")
	fmt.Println(err)
	// Output:
	// daily
	// limit.ParsePolicy: "bucket 10/s burst 20": "s" is no time: write a number with a unit, such as 500ms, 1s, 1m or 24h
}

// A flag, an environment variable or a field of a configuration has a list.
func ExamplePolicies() {
	limits := limit.Policies{}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.TextVar(&limits, "limits", limit.Policies{}, "the limits of the API")
	if err := flags.Parse([]string{"-limits", "bucket 10/1s burst 20; window 1000/1h"}); err != nil {
		log.Fatal(err)
	}
	limiter, err := limit.NewLocal("api", limits, nil)
	fmt.Println(limiter.Name(), limits, err)

	var config struct{ Plans map[string]limit.Policies }
	err = json.Unmarshal([]byte(`{"plans":{"free":"window 100/1h","paid":["window 5000/1h","bucket 50/1s"]}}`), &config)
	fmt.Println(config.Plans["paid"], err)
	// Output:
	// api bucket 10/1s burst 20; window 1000/1h <nil>
	// window 5000/1h; bucket 50/1s <nil>
}

func ExamplePolicies_UnmarshalText() {
	var limits limit.Policies
	err := limits.UnmarshalText([]byte(`
		bucket 10/1s burst 20
		window 10000/24h name daily kept # a day from the first request
	`))
	fmt.Println(len(limits), limits[1].PolicyName(), err)
	// Output: 2 daily <nil>
}

func ExamplePolicies_UnmarshalJSON() {
	var limits limit.Policies
	err := json.Unmarshal([]byte(`["bucket 10/1s burst 20", "window 1000/1h"]`), &limits)
	fmt.Println(limits, err)
	// Output: bucket 10/1s burst 20; window 1000/1h <nil>
}

// UnmarshalYAML is called by packages for YAML. They pass a function that decodes the value.
func ExamplePolicies_UnmarshalYAML() {
	var limits limit.Policies
	err := limits.UnmarshalYAML(func(v any) error { return json.Unmarshal([]byte(`"window 1000/1h"`), v) })
	fmt.Println(limits, err)
	// Output: window 1000/1h <nil>
}

func ExamplePolicies_MarshalText() {
	limits := limit.Policies{limit.Shadow(limit.SlidingLog{Name: "trial", Limit: 5, Window: 90_000_000_000})}
	text, err := limits.MarshalText()
	fmt.Printf("%s %v\n", text, err)
	// Output: log 5/1m30s name trial shadow <nil>
}

func ExamplePolicies_String() {
	fmt.Println(limit.Policies{limit.TokenBucket{Rate: 10, Per: 1_000_000_000}})
	// Output: bucket 10/1s
}

func ExampleKeysOfPolicy() {
	p, err := limit.ParsePolicy("bucket 10/1s name api ban 5/1m for 10m")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(limit.KeysOfPolicy(p))
	// Output: api!bucket-10-1s-10 api!bucket-10-1s-10!ban-5-1m-10m-10m <nil>
}
