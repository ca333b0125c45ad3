//! The headers of MCAPI agree with the library: limits, values, sizes, offsets; and compile as C and C++, without warnings.

mod programs;

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::process::Command;

use musubi::mcapi::nodes::{Attributes, Info, ORGANIZATION, VERSION};
use musubi::mcapi::requests::PENDING_MAX;
use musubi::mcapi::status::STATUSES;
use musubi_mcapi::limits;
use programs::{compile, directory, root};

const HEADERS: [&str; 6] =
    ["mca.h", "mca_config.h", "mca_impl_spec.h", "mcapi.h", "mcapi_impl_spec.h", "mcapi_v1000_to_v2000.h"];

const STANDARDS: [(&str, &str); 7] = [
    ("cc", "c89"),
    ("cc", "c99"),
    ("cc", "c11"),
    ("c++", "c++98"),
    ("c++", "c++11"),
    ("c++", "c++17"),
    ("c++", "c++20"),
];

/// Expressions of C and the values that the library gives them: facts 2.1 to 2.5, and the limits. All ones is unsigned, as
/// what it is compared with, passed as and put into is.
fn expected() -> Vec<(String, i128)> {
    let text = "MCA_TRUE 1; MCA_FALSE 0; MCA_NULL 0; MCA_INFINITE 4294967295; MCA_ORG_ID_PSI 0; MCA_ORG_ID_FSL 1;
        MCA_ORG_ID_MGC 2; MCA_ORG_ID_TBA 3; MCAPI_TRUE 1; MCAPI_FALSE 0; MCAPI_NULL 0; MCAPI_PORT_ANY 4294967295;
        MCAPI_TIMEOUT_INFINITE 4294967295; MCAPI_INFINITE 4294967295; MCAPI_TIMEOUT_IMMEDIATE 0; MCAPI_NODE_INVALID 4294967295;
        MCAPI_DOMAIN_INVALID 4294967295; MCAPI_RETURN_VALUE_INVALID 4294967295; MCAPI_MAX_PRORITY 0; MCAPI_MAX_STATUS_MSG_LEN 32;
        MCAPI_MAX_STATUS_SIZE 32; MCAPI_MAX_NUM_ENDP_ATTRS_MCA 64; MCAPI_MAX_NUM_ENDP_ATTRS_OTHER 32;
        mcapi_start_endp_attribute(0) 64; mcapi_end_endp_attribute(0) 96; mcapi_start_endp_attribute(1+1) 128;
        MCAPI_NODE_ATTR_TYPE 0; MCAPI_NODE_ATTR_END 1; MCAPI_NODE_ATTR_TYPE_REGULAR 0; MCAPI_NODE_ATTR_TYPE_END 1;
        MCAPI_ENDP_ATTR_TYPE 0; MCAPI_ENDP_ATTR_GET_COUNT 1; MCAPI_ENDP_ATTR_GET_SOURCE 2;
        MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE 3; MCAPI_ENDP_ATTR_BUFFER_TYPE 4; MCAPI_ENDP_ATTR_MEMORY_TYPE 5;
        MCAPI_ENDP_ATTR_NUM_PRIORITIES 6; MCAPI_ENDP_ATTR_PRIORITY 7; MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS 8;
        MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS 9; MCAPI_ENDP_ATTR_ENDP_STATUS 10; MCAPI_ENDP_ATTR_TIMEOUT 11;
        MCAPI_ENDP_ATTR_END 12; MCAPI_ENDP_ATTR_TYPE_MESSAGE 1; MCAPI_ENDP_ATTR_TYPE_PKTCHAN 2;
        MCAPI_ENDP_ATTR_TYPE_SCLCHAN 4; MCAPI_ENDP_ATTR_FIFO_BUFFER 0; MCAPI_ENDP_ATTR_LOCAL_MEMORY 0;
        MCAPI_ENDP_ATTR_SHARED_MEMORY 1; MCAPI_ENDP_ATTR_REMOTE_MEMORY 2; MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT 0;
        MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT 65536; MCAPI_ENDP_ATTR_STATUS_CONNECTED 1; MCAPI_ENDP_ATTR_STATUS_OPEN 2;
        MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING 4; MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING 8;
        MCAPI_ENDP_ATTR_STATUS_PKTCHAN 1; MCAPI_ENDP_ATTR_STATUS_SCLCHAN 2; MCAPI_ENDP_ATTR_STATUS_SEND 4;
        MCAPI_ENDP_ATTR_STATUS_RECEIVE 8; MCAPI_ENDP_ATTR_STATUS_GET_PENDING 16; MCAPI_STATUSCODE_END 44;
        MCAPI_ERR_MSG_LIMIT 24; MCAPI_ERR_PKT_LIMIT 34; MCAPI_ERR_SCL_SIZE 43; MCAPI_ERR_ENDP_LIMIT 11;
        MCAPI_ERR_ENDP_NOPORTS 11; MCAPI_ERR_ENDP_GET_INVALID 14; MGC_MCAPI_ERR_NOT_CONNECTED 33;
        sizeof(mcapi_endpoint_t) 4; sizeof(mcapi_request_t) 4; sizeof(mcapi_pktchan_recv_hndl_t) 4;
        sizeof(mcapi_pktchan_send_hndl_t) 4; sizeof(mcapi_sclchan_recv_hndl_t) 4; sizeof(mcapi_sclchan_send_hndl_t) 4;
        sizeof(mcapi_int8_t) 1; sizeof(mcapi_int16_t) 2; sizeof(mcapi_int32_t) 4; sizeof(mcapi_int64_t) 8;
        sizeof(mcapi_uint8_t) 1; sizeof(mcapi_uint16_t) 2; sizeof(mcapi_uint32_t) 4; sizeof(mcapi_uint64_t) 8;
        sizeof(mcapi_boolean_t) 1; sizeof(mcapi_endp_attr_get_source_t) 8; sizeof(mcapi__endp_attr_range_t) 12;
        sizeof(mcapi_endp_attr_timeout_t) 4; (mcapi_endpoint_t)-1>0 1; (mcapi_endp_attr_max_payload_size_t)-1<0 1;
        (mcapi_endp_attr_num_priorities_t)-1<0 1; (mcapi_endp_attr_num_send_buffers_t)-1<0 1;
        (mcapi_endp_attr_num_recv_buffers_t)-1>0 1; (mcapi_endp_attr_memory_type_t)-1>0 1";
    let fixed = text.split(';').map(|line| line.trim().rsplit_once(' ').unwrap());
    let mut all: Vec<(String, i128)> =
        fixed.map(|(expression, value)| (expression.to_owned(), value.parse().unwrap())).collect();
    let mut add = |expression: &str, value: i128| all.push((expression.to_owned(), value));
    add("MCAPI_VERSION", VERSION.into());
    add("MCA_ORG_ID_TBA", ORGANIZATION.into());
    add("MCAPI_NUM_RESERVED_PORTS", 0);
    add("MCAPI_MIN_PORT", 0);
    add("MCAPI_MAX_QUEUE_ELEMENTS", limits::MESSAGE_CREDIT.into());
    add("MCAPI_MAX_BUFFERS", limits::PACKET_CREDIT.into());
    add("MCA_MAX_DOMAINS", i128::from(limits::DOMAIN_MAX) + 1);
    add("MCA_MAX_NODES", i128::from(limits::NODE_MAX) + 1);
    add("MCAPI_MAX_PORT", limits::PORT_MAX.into());
    add("MCAPI_MAX_DOMAIN", limits::DOMAIN_MAX.into());
    add("MCAPI_MAX_NODE", limits::NODE_MAX.into());
    add("MCAPI_MAX_ENDPOINTS", limits::ENDPOINTS_MAX as i128);
    add("MCAPI_MAX_MESSAGE_SIZE", limits::MESSAGE_BYTES_MAX as i128);
    add("MCAPI_MAX_MSG_SIZE", limits::MESSAGE_BYTES_MAX as i128);
    add("MCAPI_MAX_PACKET_SIZE", limits::PACKET_BYTES_MAX as i128);
    add("MCAPI_MAX_PKT_SIZE", limits::PACKET_BYTES_MAX as i128);
    add("MCAPI_MIN_PRORITY", i128::from(limits::PRIORITIES) - 1);
    add("MCAPI_MAX_PRIORITY", i128::from(limits::PRIORITIES) - 1);
    add("MCA_MAX_REQUESTS", PENDING_MAX as i128);
    add("sizeof(mcapi_info_t)", size_of::<Info>() as i128);
    add("offsetof(mcapi_info_t, number_of_ports)", offset_of!(Info, number_of_ports) as i128);
    add("offsetof(mcapi_info_t, impl_info)", offset_of!(Info, impl_info) as i128);
    add("sizeof(mcapi_node_attributes_t)", size_of::<Attributes>() as i128);
    all.extend(STATUSES.iter().map(|(status, name)| (name.to_str().unwrap().to_owned(), *status as i128)));
    all
}

#[test]
fn values_are_those_of_the_facts_and_of_the_library() {
    let expected = expected();
    let mut source = String::from("#include <mcapi.h>\n#include <stdio.h>\nint main(void)\n{\n");
    for (expression, _) in &expected {
        writeln!(source, "    printf(\"%lld\\n\", (long long)({expression}));").unwrap();
    }
    source.push_str("    return 0;\n}\n");
    let path = directory().join("mcapi_values.c");
    std::fs::write(&path, source).unwrap();
    let printed = String::from_utf8(Command::new(compile(&path)).output().unwrap().stdout).unwrap();
    let printed: Vec<i128> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(printed.len(), expected.len());
    for ((expression, value), printed) in expected.iter().zip(printed) {
        assert_eq!(printed, *value, "{expression}");
    }
}

#[test]
fn each_header_compiles_alone_and_with_all_others_as_c_and_as_cpp() {
    let alone = HEADERS.iter().map(|header| format!("#include <{header}>\n"));
    let forwards: String = HEADERS.iter().map(|header| format!("#include <{header}>\n")).collect();
    let backwards: String = HEADERS.iter().rev().map(|header| format!("#include <{header}>\n")).collect();
    let cpp = Command::new("c++").arg("--version").output().is_ok();
    for (place, includes) in alone.chain([forwards, backwards]).enumerate() {
        for (compiler, standard) in STANDARDS {
            if compiler == "c++" && !cpp {
                eprintln!("skipped: there is no C++ compiler");
                continue;
            }
            let extension = if compiler == "cc" { "c" } else { "cpp" };
            let path = directory().join(format!("mcapi_include_{place}.{extension}"));
            std::fs::write(&path, format!("{includes}int main(void) {{ return 0; }}\n")).unwrap();
            let mut command = Command::new(compiler);
            command.arg(format!("-std={standard}"));
            // The standards before 1999 and 2011 have no `long long`.
            command.args(["-Wall", "-Wextra", "-pedantic", "-Wno-long-long", "-Wundef", "-Wshadow", "-Werror"]);
            command.args(["-c", "-o", "/dev/null", "-I"]);
            let status = command.arg(root().join("include")).arg(&path).status().unwrap();
            assert!(status.success(), "{standard}: {includes}");
        }
    }
}

/// How the constants are used: compared with what functions give, passed, put into variables.
const USES: &str = "#include <mcapi.h>
mcapi_boolean_t uses(mcapi_endpoint_t endpoint, mcapi_request_t *request);
mcapi_boolean_t uses(mcapi_endpoint_t endpoint, mcapi_request_t *request)
{
    mcapi_status_t status;
    size_t size;
    mcapi_timeout_t timeout = MCAPI_TIMEOUT_INFINITE;
    mcapi_endp_attr_timeout_t longest = MCA_INFINITE;
    mcapi_priority_t priority = MCAPI_MAX_PRORITY;
    if (mcapi_node_id_get(&status) == MCAPI_NODE_INVALID || mcapi_domain_id_get(&status) == MCAPI_DOMAIN_INVALID)
        return MCAPI_FALSE;
    if (mcapi_msg_available(endpoint, &status) == MCAPI_RETURN_VALUE_INVALID || status != MCAPI_SUCCESS)
        return MCAPI_FALSE;
    if (timeout != MCAPI_INFINITE || longest == MCAPI_TIMEOUT_IMMEDIATE || priority > MCAPI_MIN_PRORITY)
        return MCAPI_FALSE;
    (void)mcapi_endpoint_create(MCAPI_PORT_ANY, &status);
    if (mcapi_wait_any(1, &request, &size, MCAPI_TIMEOUT_INFINITE, &status) == MCAPI_RETURN_VALUE_INVALID)
        return MCAPI_FALSE;
    return mcapi_wait(request, &size, MCAPI_TIMEOUT_INFINITE, &status) == MCAPI_TRUE && size < MCAPI_MAX_MESSAGE_SIZE;
}
";

#[test]
fn constants_do_not_warn_where_signs_are_looked_at() {
    let cpp = Command::new("c++").arg("--version").output().is_ok();
    for (compiler, standard) in STANDARDS.into_iter().filter(|(compiler, _)| cpp || *compiler == "cc") {
        let path = directory().join(if compiler == "cc" { "mcapi_uses.c" } else { "mcapi_uses.cpp" });
        std::fs::write(&path, USES).unwrap();
        let mut command = Command::new(compiler);
        command.arg(format!("-std={standard}")).args(["-Wall", "-Wextra", "-Wsign-compare", "-Wconversion"]);
        command.args(["-Wsign-conversion", "-Wno-long-long", "-Werror", "-c", "-o", "/dev/null", "-I"]);
        assert!(command.arg(root().join("include")).arg(&path).status().unwrap().success(), "{standard}");
    }
}
