//! Readers of data. The first byte of an input says which of a target's files it is, and whether it is packed first;
//! the rest is the file.

use super::{assert_told, files, scenario};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// A file that a scenario names.
pub struct Form {
    /// Its name.
    pub file: &'static str,
    /// What the scenario has beside [`scenario::CLIENTS`], and in the place of its latencies, if anything.
    pub task: String,
    pub latency: Option<String>,
    /// Other files, which are as they should be.
    pub beside: Vec<(&'static str, Vec<u8>)>,
    /// Whether it may be packed.
    pub packs: bool,
    /// Good contents.
    pub good: Vec<Vec<u8>>,
}

/// The bit of the first byte that has the file packed.
const PACKED: u8 = 0x80;

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Every good file plain and packed: by the target, and as it is.
fn corpus(forms: &[Form]) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (form, number) in forms.iter().zip(0_u8..) {
        for good in &form.good {
            inputs.push([&[number][..], good].concat());
            if form.packs {
                inputs.push([&[number | PACKED][..], good].concat());
                inputs.push([&[number][..], &gzip(good)].concat());
            }
        }
    }
    inputs
}

fn read(forms: &[Form], input: &[u8]) -> Result<(), String> {
    let Some((&first, contents)) = input.split_first() else { return Ok(()) };
    let form = &forms[usize::from(first & !PACKED) % forms.len()];
    let packed = if first & PACKED > 0 { gzip(contents) } else { contents.to_vec() };
    for (name, bytes) in &form.beside {
        files::write(name, bytes);
    }
    files::write(form.file, &packed);
    let text = scenario::text(&form.task, form.latency.as_deref());
    let file = form.file.rsplit('/').next().unwrap();
    let played = scenario::play(&text, 2).inspect_err(|message| assert_told(message, &[file, "scenario.toml:"]));
    // What another form finds is its own.
    for name in form.beside.iter().map(|(name, _)| *name).chain([form.file]) {
        std::fs::remove_file(files::folder().join(name)).unwrap();
    }
    played
}

macro_rules! families {
    ($($name:ident)+) => {
        $(pub mod $name {
            use std::cell::OnceCell;

            thread_local! {
                static FORMS: OnceCell<Vec<super::Form>> = const { OnceCell::new() };
            }

            pub fn corpus() -> Vec<Vec<u8>> {
                FORMS.with(|forms| super::corpus(forms.get_or_init(super::forms::$name)))
            }

            pub fn run(input: &[u8]) -> Result<(), String> {
                FORMS.with(|forms| super::read(forms.get_or_init(super::forms::$name), input))
            }
        })+
    };
}
families! {
    idx cifar svhn npy csv class_counts ratings item_features weights availability links speeds samples scripts
}

/// The scenarios that name the files, and good contents.
mod forms {
    use super::Form;

    const TRAINING: &str = "[training]\nbatch = 4\noptimizer = { sgd = { lr = 0.01 } }\n";

    fn form(file: &'static str, task: &str, good: Vec<Vec<u8>>) -> Form {
        Form {
            file,
            task: task.to_owned(),
            latency: None,
            beside: Vec::new(),
            packs: !["w.safetensors", "samples"].contains(&file),
            good,
        }
    }

    fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    fn softmax(data: &str) -> String {
        format!("[task.softmax-regression]\ndata = {data}\n{TRAINING}")
    }

    fn words(header: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(data);
        bytes
    }

    fn labels(count: u8) -> Vec<u8> {
        words(&[2_049, u32::from(count)], &(0..count).map(|label| label % 3).collect::<Vec<_>>())
    }

    fn images(count: u8) -> Vec<u8> {
        words(&[2_051, u32::from(count), 2, 2], &(0..4 * count).map(|pixel| pixel.wrapping_mul(5)).collect::<Vec<_>>())
    }

    pub fn idx() -> Vec<Form> {
        let all: [(&'static str, Vec<u8>); 4] = [
            ("digits/train-images-idx3-ubyte", images(12)),
            ("digits/train-labels-idx1-ubyte", labels(12)),
            ("digits/t10k-images-idx3-ubyte", images(6)),
            ("digits/t10k-labels-idx1-ubyte", labels(6)),
        ];
        let of = |(name, good): &(&'static str, Vec<u8>)| {
            let beside = all.iter().filter(|(other, _)| other != name).cloned().collect();
            Form { beside, ..form(name, &softmax("\"digits\""), vec![good.clone()]) }
        };
        all.iter().map(of).collect()
    }

    pub fn cifar() -> Vec<Form> {
        let rows = |labels: &[&[u8]]| {
            let row =
                |label: &&[u8]| [label, &(0..3_072).map(|byte| (byte % 251) as u8).collect::<Vec<_>>()[..]].concat();
            labels.iter().flat_map(row).collect::<Vec<u8>>()
        };
        let (ten, hundred) =
            (rows(&[&[1], &[0], &[9], &[4], &[1]]), rows(&[&[3, 99], &[0, 7], &[1, 7], &[1, 7], &[19, 8]]));
        let of = |file, beside, data: &str, good: &Vec<u8>| Form {
            beside: vec![(beside, good.clone())],
            ..form(file, &softmax(data), vec![good.clone()])
        };
        vec![
            of("ten/train.bin", "ten/test.bin", "{ cifar10 = \"ten\" }", &ten),
            of("ten/test.bin", "ten/train.bin", "\"ten\"", &ten),
            of("hundred/train.bin", "hundred/test.bin", "{ cifar100 = \"hundred\" }", &hundred),
        ]
    }

    /// Five images of the same bytes and their digits, plain.
    pub fn svhn() -> Vec<Form> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let element = |kind: u32, content: &[u8]| {
            let filled = vec![0; content.len().next_multiple_of(8) - content.len()];
            [&words(&[kind, content.len() as u32])[..], content, &filled].concat()
        };
        let array = |name: &[u8], dimensions: &[u32], numbers: &[u8]| {
            let head = [element(6, &words(&[9, 0])), element(5, &words(dimensions)), element(1, name)].concat();
            element(14, &[head, element(2, numbers)].concat())
        };
        let pixels: Vec<u8> = (0..5 * 3_072).map(|byte| (byte % 251) as u8).collect();
        let arrays = [array(b"X", &[32, 32, 3, 5], &pixels), array(b"y", &[5, 1], &[10, 1, 9, 4, 1])].concat();
        let good = [&[b' '; 124][..], &[0, 1, b'I', b'M'], &arrays].concat();
        let beside = vec![("s/test_32x32.mat", good.clone())];
        vec![Form { beside, ..form("s/train_32x32.mat", &softmax("\"s\""), vec![good]) }]
    }

    fn array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}    \n");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn floats(count: u8) -> Vec<u8> {
        (0..count).flat_map(|number| (f32::from(number) / 8.0 - 2.0).to_le_bytes()).collect()
    }

    pub fn npy() -> Vec<Form> {
        let classes = |count: u8| array("|u1", &format!("({count},)"), &(0..count).map(|n| n % 3).collect::<Vec<_>>());
        let features = |count: u8| array("<f4", &format!("({count}, 3)"), &floats(3 * count));
        let task = softmax(
            "{ npy = { train = \"x.npy\", train_labels = \"y.npy\", test = \"v.npy\", test_labels = \"w.npy\" } }",
        );
        let all: [(&'static str, Vec<u8>); 4] =
            [("x.npy", features(10)), ("y.npy", classes(10)), ("v.npy", features(6)), ("w.npy", classes(6))];
        let more = |name: &str| match name {
            "x.npy" => vec![
                array("<i8", "(10, 3)", &(0..30_i64).flat_map(i64::to_le_bytes).collect::<Vec<_>>()),
                array("|u1", "(10, 3)", &(0..30).collect::<Vec<_>>()),
            ],
            "y.npy" => vec![array("<u2", "(10,)", &[2, 0].repeat(10))],
            _ => Vec::new(),
        };
        let of = |(name, good): &(&'static str, Vec<u8>)| {
            let beside = all.iter().filter(|(other, _)| other != name).cloned().collect();
            Form { beside, ..form(name, &task, [vec![good.clone()], more(name)].concat()) }
        };
        all.iter().map(of).collect()
    }

    pub fn csv() -> Vec<Form> {
        let row =
            |row: u32| format!("{},{},\"{}\",u{},{}\n", row, row % 3, row % 2, row % 5, f64::from(row) / 4.0 - 1e-3);
        let table = format!("a,y,\"b c\",user,z\n{}", (0..12).map(row).collect::<String>());
        let named = table.replace(",0,", ",zero,").replace(",1,", ",\"o\"\"ne\",").replace('\n', "\r\n");
        let numbers = "a,z\n1,2\n-3,4e0\n 5 ,.5\n7,8\n9,1\n2,2\n3,3\n0,1\n4,2\n";
        let one = |more: &str| format!("{{ csv = {{ train = \"t.csv\", test_fraction = 0.25, {more} }} }}");
        vec![
            form("t.csv", &softmax(&one("label = \"y\", group = \"user\"")), texts(&[&table, &named])),
            form(
                "t.csv",
                &format!("[task.linear-regression]\ndata = {}\nnormalize = true\n{TRAINING}", one("target = \"z\"")),
                texts(&[numbers]),
            ),
            form(
                "t.csv",
                &format!(
                    "[task.softmax-regression]\ndata = {}\npartition = \"by-column\"\n{TRAINING}",
                    one("label = \"y\", group = \"user\"")
                ),
                texts(&[&table]),
            ),
        ]
    }

    pub fn class_counts() -> Vec<Form> {
        let task = |scale: &str| {
            format!(
                "[task.softmax-regression]\ndata = {{ synthetic = {{ classes = 3, height = 3, width = 3, train = 40, test = 6, noise = 0.1 }} }}\n\
                 partition = {{ class-counts = {{ file = \"counts.csv\"{scale} }} }}\n{TRAINING}"
            )
        };
        let good = [
            "3,0,2\n0,1,4\n2,2,2\n0,3,0\n1,1,1\n",
            "client\ta\tb\tc\nx\t1\t2\t3\ny\t0\t0\t2\nz\t1\t1\t1\nu\t1\t1\t2\nv\t2\t0\t0\n",
        ];
        vec![
            form("counts.csv", &task(""), texts(&good)),
            form("counts.csv", &task(", scale = \"fit\""), texts(&["30,0,2\n0,100,4\n2,2,2\n0,3,0\n1,1,1\n"])),
        ]
    }

    const MODEL: &str = "cutoffs = [2]\nmodel = { mf = { dimensions = 2 } }\n";

    pub fn ratings() -> Vec<Form> {
        let task = |data: &str, more: &str| {
            format!("[task.recommendation]\ndata = {data}\npartition = \"iid\"\n{MODEL}{more}\n{TRAINING}")
        };
        let lines = |separator: &str, row: &dyn Fn(u32, u32) -> Vec<String>| {
            let pairs =
                (0..6).flat_map(|user| (0..24).filter(move |item| (user + item) % 3 > 0).map(move |item| (user, item)));
            pairs.map(|(user, item)| row(user, item).join(separator) + "\n").collect::<String>()
        };
        let plain = |user: u32, item: u32| {
            vec![
                user.to_string(),
                (10 * item).to_string(),
                (1 + (user * item) % 5).to_string(),
                (900_000 + user + 7 * item).to_string(),
            ]
        };
        let folder = |file, header: &str, body: &str| {
            form(
                file,
                &task(&format!("\"{}\"", file.split('/').next().unwrap()), ""),
                texts(&[&format!("{header}{body}")]),
            )
        };
        let csv = format!(
            "user,item,stars,when,part\n{}",
            lines(",", &|user, item| [
                plain(user, item),
                vec![["train", "train", "test"][(item % 3) as usize].to_owned()]
            ]
            .concat())
        );
        let tsv = |fields: usize| {
            lines("\t", &|user, item| [plain(user, item), vec!["1".to_owned()]].concat()[..fields].to_vec())
        };
        vec![
            form(
                "r.csv",
                &task(
                    "{ csv = { file = \"r.csv\", rating = \"stars\", time = \"when\", group = \"part\" } }",
                    "range = [1, 5]",
                ),
                texts(&[&csv]),
            ),
            form("r.csv", &task("{ csv = { file = \"r.csv\", split = \"part\" } }", ""), texts(&[&csv])),
            form(
                "a.json",
                &task("{ amazon = { file = \"a.json\" } }", "range = [1, 5]"),
                texts(&[&lines("", &|user, item| {
                    let [user, item, rating, time] = plain(user, item).try_into().unwrap();
                    vec![format!(
                        "{{\"user_id\": \"{user}\", \"asin\": \"{item}\", \"rating\": {rating}, \"timestamp\": {time}, \"text\": \"a, b\"}}"
                    )]
                })]),
            ),
            form(
                "a.csv",
                &task("{ amazon = { file = \"a.csv\", order = \"user-item\" } }", ""),
                texts(&[&lines(",", &plain)]),
            ),
            folder("hundred/u.data", "", &tsv(4)),
            folder("million/ratings.dat", "", &lines("::", &plain)),
            folder("games/Video.txt", "", &lines(" ", &|user, item| plain(user, item)[..2].to_vec())),
            folder("ciao/ratings.tsv", "user_id\tproduct_id\tcategory_id\trating\thelpfulness\n", &tsv(5)),
            folder("epinions/ratings.tsv", "user_id\titem_id\trating\tfold\n", &tsv(4)),
            folder(
                "trust/ratings.tsv",
                "user\titem\trating_code\tsplit\n",
                &lines("\t", &|user, item| {
                    [plain(user, item)[..3].to_vec(), vec![["train", "train", "test"][(item % 3) as usize].to_owned()]]
                        .concat()
                }),
            ),
        ]
    }

    pub fn item_features() -> Vec<Form> {
        let task = format!(
            "[task.recommendation]\ndata = {{ csv = {{ file = \"ratings.csv\", split = \"split\" }} }}\npartition = \"iid\"\ncutoffs = [2]\n\
             triplets = \"triplets.csv\"\n[task.recommendation.model.dmrl]\ntext = \"text.csv\"\nimage = \"image.npy\"\ndim = 4\nfactors = 2\nhidden = 3\n\
             attention_hidden = 2\ndropout = 0.0\nnegatives = 2\n{TRAINING}"
        );
        let ratings = "user,item,split\na,10,train\na,20,train\na,30,test\nb,30,train\nb,50,train\nb,10,test\nc,40,train\nc,20,test\n";
        let text = "movie,x,y\n50,0.5,-1\n10,1,0.25\n30,-0.75,0.5\n40,0,2\n";
        let triplets = "user,positive,negative\na,10,40\na,10,50\nb,30,20\nb,30,40\na,20,50\na,20,30\nc,40,10\nc,40,30\nb,50,20\nb,50,10\n";
        let all: [(&'static str, Vec<u8>); 4] = [
            ("text.csv", text.into()),
            ("image.npy", array("<f4", "(5, 3)", &floats(15))),
            ("triplets.csv", triplets.into()),
            ("ratings.csv", ratings.into()),
        ];
        let of = |(name, good): &(&'static str, Vec<u8>)| {
            let beside = all.iter().filter(|(other, _)| other != name).cloned().collect();
            Form { beside, ..form(name, &task, vec![good.clone()]) }
        };
        all[..3].iter().map(of).collect()
    }

    fn tensors(shapes: &[(&str, &[usize])]) -> Vec<u8> {
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, shape) in shapes {
            let begin = data.len();
            data.extend(floats(shape.iter().product::<usize>() as u8));
            header.insert(
                (*name).to_owned(),
                serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()] }),
            );
        }
        let header = serde_json::Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
    }

    pub fn weights() -> Vec<Form> {
        let images = "{ synthetic = { classes = 3, height = 3, width = 3, train = 12, test = 6, noise = 0.1 } }";
        let ratings = "user,item,part\n0,0,train\n0,1,train\n0,2,test\n1,0,test\n1,3,train\n1,2,train\n2,1,test\n2,3,train\n2,0,train\n";
        let softmax = format!("[task.softmax-regression]\ndata = {images}\nstart = \"w.safetensors\"\n{TRAINING}");
        let mlp = format!(
            "[task.classification]\ndata = {images}\nmodel = {{ mlp = {{ hidden = [2] }} }}\nstart = \"w.safetensors\"\n{TRAINING}"
        );
        let rows = format!(
            "[task.recommendation]\ndata = {{ csv = {{ file = \"ratings.csv\", split = \"part\" }} }}\npartition = \"iid\"\n{MODEL}start = \"w.safetensors\"\n{TRAINING}"
        );
        vec![
            form("w.safetensors", &softmax, vec![tensors(&[("linear.weight", &[3, 9]), ("linear.bias", &[3])])]),
            form(
                "w.safetensors",
                &mlp,
                vec![tensors(&[
                    ("fc1.weight", &[2, 9]),
                    ("fc1.bias", &[2]),
                    ("fc2.weight", &[3, 2]),
                    ("fc2.bias", &[3]),
                ])],
            ),
            Form {
                beside: vec![("ratings.csv", ratings.into())],
                ..form("w.safetensors", &rows, vec![tensors(&[("users.weight", &[3, 2]), ("items.weight", &[4, 2])])])
            },
        ]
    }

    pub fn availability() -> Vec<Form> {
        let trace = |more: &str| format!("[population.availability.trace]\nfile = \"trace\"\n{more}\n");
        let intervals = "client,start_s,end_s\na,0,3600\na,7200,9000.5\nb,1800,86400\n";
        let spans = "{\"a\": [[0, 10], [20.5, 3000], [5, 4], [9000, 9001]], \"b\": [], \"c\": [[1, 2], [1.5, 70000]]}";
        let devices = "device,start_s,end_s\n3,10,20\n3,30,3000\n5,100,200\n";
        let windows = "device,valid,trace_start_s,trace_end_s,n_intervals\n3,1,0,5000,2\n4,0,0,10,0\n5,1,50,5000,1\n6,1,0,100,0\n";
        let both = trace("format = \"flhetbench\"\nwindows = \"windows\"");
        vec![
            form("trace", &trace(""), texts(&[intervals])),
            form("trace", &trace("wrap = false\nwindow = \"1 d\"\nassign = \"permuted\""), texts(&[intervals])),
            form("trace", &trace("format = \"flash\""), texts(&[spans, devices])),
            Form { beside: vec![("windows", windows.into())], ..form("trace", &both, texts(&[devices])) },
            Form { beside: vec![("trace", devices.into())], ..form("windows", &both, texts(&[windows])) },
        ]
    }

    /// Devices in the place of latencies, with one key of their profile in a file.
    fn device(file: &'static str, keys: [&str; 3], good: &[&str]) -> Form {
        let [samples, down, up] = keys;
        let device = format!("[population.device]\nsamples_per_second = {samples}\ndownlink = {down}\nuplink = {up}\n");
        let task = format!("[task.linear-regression]\nexamples = 60\nfeatures = 2\n{TRAINING}");
        Form { latency: Some(device), ..form(file, &task, texts(good)) }
    }

    pub fn links() -> Vec<Form> {
        let plain = "trace,time_s,mbit_per_s\na,0,1\na,1.5,0\na,2,8\nb,100,3e-1\nb,101,2\nc,7,1\n";
        let sets = "set,trace,time_s,mbit_per_s\nx,a,0,1\nx,a,1.5,0.5\ny,a,2,8\ny,b,100,3\n";
        let link = |more: &str| format!("{{ trace = {{ file = \"link\"{more} }} }}");
        vec![
            device("link", ["10", "\"1 Mbit/s\"", &link("")], &[plain]),
            device(
                "link",
                ["10", &link(", format = \"bandwidth\", set = \"y\", scale = 2.0"), "\"1 Mbit/s\""],
                &[sets],
            ),
            device("link", ["10", "\"1 Mbit/s\"", &link(", offset = { uniform = [\"0 s\", \"2 s\"] }")], &[plain]),
        ]
    }

    pub fn speeds() -> Vec<Form> {
        let rate = "\"1 Mbit/s\"";
        let table = |keys: &str| format!("{{ table = {{ file = \"table\", {keys} }} }}");
        let flash = "{\"a\": {\"down_u\": 300, \"down_sigma\": 20.5, \"up_u\": 80, \"up_sigma\": 1}, \"b\": {\"down_u\": 1e3, \"down_sigma\": 3, \"up_u\": 8e1, \"up_sigma\": 9}}";
        let tcp = "name,kbps_0,kbps_1,kbps_2\na,100,200,\nb,3e3\nc,1,2,3\n";
        let numbers = "model,ms,other\nx,166,a\ny,20.5,b\nx,0,\nx,3,d\n";
        vec![
            device(
                "table",
                ["10", rate, &table("format = \"flash-speeds\", column = \"up\", unit = \"kbit/s\"")],
                &[flash],
            ),
            device("table", ["10", &table("format = \"mobiperf\", unit = \"kbit/s\""), rate], &[tcp]),
            device(
                "table",
                [
                    &table("column = \"ms\", unit = \"ms\", per = 32, missing = \"drop\", where = { model = \"x\" }"),
                    rate,
                    rate,
                ],
                &[numbers],
            ),
            device(
                "table",
                [
                    &table("column = \"ms\", unit = \"ms\", per = 1, missing = \"drop\", assign = \"permuted\""),
                    rate,
                    rate,
                ],
                &[numbers],
            ),
        ]
    }

    pub fn samples() -> Vec<Form> {
        let latency = "[population.latency]\ndownload = { constant = \"1 s\" }\nupload = { constant = \"1 s\" }\ncompute = { empirical = { file = \"samples\" } }\n";
        vec![Form {
            latency: Some(latency.to_owned()),
            ..form("samples", "", texts(&["1\n2.5\n0\n1e-3\n", "  7 \n\n3\r\n"]))
        }]
    }

    pub fn scripts() -> Vec<Form> {
        let task = |keys: &str| format!("[task.scripted]\nmetric = \"test_score\"\nbetter = \"higher\"\n{keys}\n");
        let by_client = "client,value\n0,0.5\n1,-1\n4,2e-2\n2,0\n3,7\n";
        let rows = (0..3).map(|round| format!("{round},0,0.{round}\n")).collect::<String>();
        let losses = (0..3).map(|round| format!("{round},0,0,0.{round}\n")).collect::<String>();
        vec![
            form("by", &task("values = [1.0]\neffects = \"by\""), texts(&[by_client])),
            form("by", &task("values = [1.0]\nclient_losses = \"by\""), texts(&[by_client])),
            form("by", &task("accuracies = \"by\""), texts(&[&format!("round,server,accuracy\n{rows}")])),
            form(
                "by",
                &task("values = [1.0]\nlosses = \"by\""),
                texts(&[&format!("round,server,cluster,loss\n{losses}")]),
            ),
        ]
    }
}
