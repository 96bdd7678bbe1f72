// A server that costs little: the files of a folder, by their paths and as objects of Cloud Storage.
//
//	file_server -folder DIR [-delay 20ms] [-certificate FILE -key FILE]
//
// Says its address in a line on stdout. /PATH is a file; /storage/v1/b/BUCKET/o/NAME is what Cloud Storage says of an
// object, and with /download before it, its bytes. /reads says how many reads were under way at a time, in JSON.
package main

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Reads under way: the most at a time, and the time-weighted mean between the first and the last.
type reads struct {
	sync.Mutex
	now, most, count     int
	busy                 float64
	first, last, changed time.Time
}

func (r *reads) change(by int) {
	r.Lock()
	defer r.Unlock()
	moment := time.Now()
	if r.first.IsZero() {
		r.first = moment
	} else {
		r.busy += float64(r.now) * moment.Sub(r.changed).Seconds()
	}
	r.changed, r.last = moment, moment
	r.now += by
	r.most = max(r.most, r.now)
	if by > 0 {
		r.count++
	}
}

func main() {
	folder := flag.String("folder", ".", "what is served")
	delay := flag.Duration("delay", 0, "before each answer")
	certificate := flag.String("certificate", "", "of the server, for https")
	key := flag.String("key", "", "of the certificate")
	flag.Parse()
	table := crc32.MakeTable(crc32.Castagnoli)
	underWay := &reads{}
	handler := func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/reads" {
			underWay.Lock()
			defer underWay.Unlock()
			mean := underWay.busy / underWay.last.Sub(underWay.first).Seconds()
			fmt.Fprintf(answer, `{"reads": %d, "most": %d, "mean": %g}`, underWay.count, underWay.most, mean)
			return
		}
		// Paths are cleaned here, and names of objects come quoted: both are below the folder, whatever they say.
		name, isMedia := strings.CutPrefix(request.URL.Path, "/download")
		if object, isObject := strings.CutPrefix(name, "/storage/v1/b/"); isObject {
			_, name, _ = strings.Cut(object, "/o/")
		} else {
			isMedia = true
		}
		path := filepath.Join(*folder, filepath.Clean("/"+name))
		if isMedia && request.Method == http.MethodGet {
			underWay.change(1)
			defer underWay.change(-1)
			time.Sleep(*delay)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			http.NotFound(answer, request)
			return
		}
		if !isMedia {
			answer.Header().Set("Content-Type", "application/json")
			json.NewEncoder(answer).Encode(map[string]string{"size": fmt.Sprint(len(data)), "generation": "1"})
			return
		}
		sum := crc32.Checksum(data, table)
		text := base64.StdEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
		answer.Header().Set("X-Goog-Hash", "crc32c="+text)
		answer.Header().Set("Content-Length", fmt.Sprint(len(data)))
		answer.Header().Set("Content-Type", "image/jpeg")
		if request.Method != http.MethodHead {
			answer.Write(data)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	scheme := "http"
	if *certificate != "" {
		scheme = "https"
	}
	fmt.Printf("%s://%s\n", scheme, listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(handler)}
	if *certificate != "" {
		log.Fatal(server.ServeTLS(listener, *certificate, *key))
	}
	log.Fatal(server.Serve(listener))
}
